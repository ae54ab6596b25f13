"""Trains a character GPT in plain PyTorch, as an arm of gpt-shakespeare.toml.

The network is nanoGPT's, with a tied head and without dropout and biases. Recipe and sizes are those of run.json. First
weights and order of samples are those of trainyard: each is drawn from a stream with its own name."""
import hashlib
import json
import math
import os
import time

import torch
from torch import nn
from torch.nn import functional

SPECIAL_TOKENS = 4  # numbers before those of the characters


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.qkv(x).split(width, dim=2))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width, bias=False), nn.LayerNorm(width, bias=False)
        self.attention = Attention(width, heads)
        self.fc, self.proj = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.proj(functional.gelu(self.fc(self.norm2(x))))


class GPT(nn.Module):
    """[batch, length] int64 tokens -> [batch, length, vocabulary] logits."""

    def __init__(self, vocabulary, context, layers, heads, width):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width, bias=False)

    def forward(self, x):
        h = self.tokens(x) + self.positions(torch.arange(x.size(1)))
        for block in self.blocks:
            h = block(h)
        return functional.linear(self.norm(h), self.tokens.weight)

    def named_as_in_trainyard(self):
        """(number of the layer, role, parameter, deviation of its first values), in the order of their streams."""
        yield 0, "weight", self.tokens.weight, 0.02
        yield 0, "positions", self.positions.weight, 0.02
        of_residual = 0.02 / math.sqrt(2 * len(self.blocks))
        for number, block in enumerate(self.blocks):
            layers = {2: block.norm1, 3: block.attention.qkv, 5: block.attention.proj, 8: block.norm2, 9: block.fc,
                      11: block.proj}
            for place, layer in layers.items():
                yield 12 * number + place, "weight", layer.weight, of_residual if place in (5, 11) else 0.02
        yield 12 * len(self.blocks) + 2, "weight", self.norm.weight, None


def stream(purpose, seed, detail):
    start = int(hashlib.sha256(f"{purpose}/{seed}/{detail}".encode()).hexdigest()[:8], 16)
    return torch.Generator().manual_seed(start)


@torch.no_grad()
def initialise(model, seed):
    streams = {}
    for layer, _, parameter, deviation in model.named_as_in_trainyard():
        if parameter.dim() > 1:
            generator = streams.setdefault(layer, stream("weights", seed, layer))
            parameter.copy_(torch.empty(parameter.shape, dtype=torch.float64).normal_(0, deviation, generator=generator))


def windows(tokens, context):
    """Windows of context + 1 tokens. The last token of one is the first of the next."""
    count = (len(tokens) - 1) // context
    return tokens[:count * context + 1].unfold(0, context + 1, context)


def permutation(size, seed):
    """The order in which trainyard numbers the training samples: Fisher and Yates, with SplitMix64."""
    order, state, most = list(range(size)), seed, 2**64 - 1
    for left in range(size, 1, -1):
        drawn, unfair = -1, 2**64 % left
        while drawn < unfair:
            state = (state + 0x9e3779b97f4a7c15) & most
            drawn = ((state ^ state >> 30) * 0xbf58476d1ce4e5b9) & most
            drawn = ((drawn ^ drawn >> 27) * 0x94d049bb133111eb) & most
            drawn ^= drawn >> 31
        order[left - 1], order[drawn % left] = order[drawn % left], order[left - 1]
    return order


def epoch_order(samples, batch, steps, seed, epoch):
    """The epoch's part of the stream of all passes."""
    begin, end, parts = (epoch - 1) * steps * batch, epoch * steps * batch, []
    while begin < end:
        order = torch.randperm(samples, generator=stream("order", seed, 1 + begin // samples))
        parts.append(order[begin % samples:][:end - begin])
        begin += len(parts[-1])
    return torch.cat(parts)


def learning_rate(settings, step, steps):
    high, low, warmup = settings["learning_rate"], settings["learning_rate_min"], settings["warmup_steps"]
    if step < warmup:
        return high * (step + 1) / warmup
    return low + (high - low) * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup)))


class Sums:
    """The sums of loss and right predictions over tokens, as tensors."""

    def __init__(self):
        self.loss, self.correct, self.tokens = torch.zeros((), dtype=torch.float64), torch.zeros((), dtype=torch.int64), 0

    def mean_loss(self, model, window):
        logits, target = model(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten()
        loss = functional.cross_entropy(logits, target)
        with torch.no_grad():
            self.loss += loss.double() * len(target)
            self.correct += logits.argmax(1).eq(target).sum()
        self.tokens += len(target)
        return loss

    def metrics(self, phase):
        return [{"phase": phase, "name": name, "sum": total.item(), "weight": self.tokens}
                for name, total in (("loss", self.loss), ("correct", self.correct))]


@torch.no_grad()
def evaluate(model, data, batch, phase):
    begin, sums = time.monotonic(), Sums()
    for window in data.split(batch):
        sums.mean_loss(model, window)
    return sums.metrics(phase), time.monotonic() - begin


def main():
    run, begin = json.load(open(os.environ["TRAINYARD_RUN"])), time.monotonic()
    work, seed = run["work"], run["seed"]
    sizes, settings, data = work["hyperparameters"], work["optimizer"], work["data"]
    if data["source"] != "tiny-shakespeare":
        raise SystemExit("this program reads tiny-shakespeare; run the experiment with --data DIR")
    records = open(f"{run['records']}/rank-0.records.jsonl", "ab", buffering=0)
    common = {"v": 1, "run": run["run"], "attempt": run["attempt"], "rank": 0, "seq": -1}

    def record(type, **members):
        common["seq"] += 1
        now = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "elapsed_seconds": time.monotonic() - begin}
        records.write(json.dumps({**common, "type": type, **now, **members}).encode() + b"\n")

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    text = open(os.path.join(data["folder"], "input.txt"), encoding="utf-8", newline="").read()
    number = {character: SPECIAL_TOKENS + i for i, character in enumerate(sorted(set(text)))}
    tokens, context, batch, steps = torch.tensor([number[c] for c in text]), data["window_length"], work["global_batch"], \
        work["steps_per_epoch"]
    first, second = len(text) * 90 // 100, len(text) * 90 // 100 + len(text) * 5 // 100
    train, validation, test = (windows(part, context) for part in (tokens[:first], tokens[first:second], tokens[second:]))
    train = train[permutation(len(train), data["split_seed"])]

    model = GPT(SPECIAL_TOKENS + len(number), context, sizes["layers"], sizes["heads"], sizes["width"])
    initialise(model, seed)
    parameters = list(model.parameters())
    groups = [{"params": [p for p in parameters if p.dim() > 1]},
              {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, settings["learning_rate"], (settings["beta1"], settings["beta2"]),
                                  settings["epsilon"], settings["weight_decay"], fused=True)
    record("start", world_size=1, replica=0, stage=0, pid=os.getpid(), threads=torch.get_num_threads(), device="cpu:0",
           data_fingerprint=data["fingerprint"], epochs=run["epochs"], steps_per_epoch=steps, global_batch=batch,
           window_length=context, optimizer=settings["kind"], learning_rate=settings["learning_rate"],
           learning_rate_schedule=settings["schedule"], learning_rate_min=settings["learning_rate_min"],
           warmup_steps=settings["warmup_steps"], beta1=settings["beta1"], beta2=settings["beta2"],
           weight_decay=settings["weight_decay"], weight_decay_of=settings["weight_decay_of"],
           clip_norm=settings["clip_norm"], precision="float32", batch_norm="local",
           initial_weights={f"{layer}.{role}": hashlib.sha256(parameter.detach().numpy().tobytes()).hexdigest()[:15]
                            for layer, role, parameter, _ in model.named_as_in_trainyard()})
    setup_seconds = time.monotonic() - begin
    for epoch in range(1, run["epochs"] + 1):
        epoch_begin, sums = time.monotonic(), Sums()
        order = epoch_order(len(train), batch, steps, seed, epoch)
        for step, samples in enumerate(order.split(batch), (epoch - 1) * steps):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(settings, step, run["epochs"] * steps)
            optimizer.zero_grad()
            sums.mean_loss(model, train[samples]).backward()
            nn.utils.clip_grad_norm_(parameters, settings["clip_norm"])
            optimizer.step()
        seconds = time.monotonic() - epoch_begin
        metrics, validation_seconds = evaluate(model, validation, batch, "validation")
        record("epoch", epoch=epoch, train_seconds=seconds, validation_seconds=validation_seconds,
               batches=hashlib.sha256(order.numpy().tobytes()).hexdigest(), metrics=sums.metrics("train") + metrics)
    metrics, seconds = evaluate(model, test, batch, "test")
    record("test", seconds=seconds, metrics=metrics)
    record("end", status="finished", setup_seconds=setup_seconds, total_seconds=time.monotonic() - begin)


if __name__ == "__main__":
    main()
