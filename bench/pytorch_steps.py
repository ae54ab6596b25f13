"""A training step as a PyTorch user writes it, plain or as a CUDA graph, and the sums over steps."""
import collections

import torch
import torch.nn.functional as functional


def loss_sum(task, output, target):
    if task == "reconstruction":
        return functional.mse_loss(output, target, reduction="sum")
    if task == "translation":
        return functional.cross_entropy(output.flatten(0, 1), target.flatten(), ignore_index=0, reduction="sum")
    return functional.cross_entropy(output, target, reduction="sum")


def correct(task, output, target):
    if task == "translation":
        return (output.argmax(2).eq(target) & target.ne(0)).sum()
    return output.argmax(1).eq(target).sum()


class Sums:
    """Sums over the samples of this rank. With `per_step` they are read from the device in each step."""

    def __init__(self, task, per_step):
        self.task, self.per_step, self.loss, self.correct = task, per_step, 0.0, 0

    def add(self, loss, output, target):
        right = 0 if self.task == "reconstruction" else correct(self.task, output, target)
        self.loss += loss.item() if self.per_step else loss.detach().double()
        self.correct += int(right) if self.per_step else right

    def metrics(self, phase, weight):
        names = {"loss": float(self.loss)} | ({} if self.task == "reconstruction" else {"correct": int(self.correct)})
        return [{"phase": phase, "name": name, "sum": value, "weight": weight} for name, value in names.items()]


class Step:
    """A training step. Returns its summed loss and its output."""

    def __init__(self, task, forward, optimizer):
        self.task, self.forward, self.optimizer = task, forward, optimizer

    def __call__(self, inputs, target, factor):
        self.optimizer.zero_grad()
        output = self.forward(*inputs)
        loss = loss_sum(self.task, output, target)
        (loss * factor).backward()
        self.optimizer.step()
        return loss, output


class CapturedStep:
    """A step that is captured as a CUDA graph when a shape occurs for the fourth time. PyTorch needs some plain steps
    before. All graphs share one memory pool, because they never run at the same time."""

    def __init__(self, step):
        self.step, self.seen, self.captured = step, collections.Counter(), {}
        self.pool = torch.cuda.graph_pool_handle()
        self.stream = torch.cuda.Stream()

    def __call__(self, inputs, target, factor):
        shape = tuple(tensor.shape for tensor in (*inputs, target))
        self.seen[shape] += 1
        if self.seen[shape] <= 3:
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                done = self.step(inputs, target, factor)
            torch.cuda.current_stream().wait_stream(self.stream)
            return done
        if shape not in self.captured:
            fixed = [tensor.clone() for tensor in (*inputs, target, torch.tensor(0.0, device=target.device))]
            graph = torch.cuda.CUDAGraph()
            # on the stream of the steps before it, so that all gradients are on one stream
            with torch.cuda.graph(graph, pool=self.pool, stream=self.stream):
                done = self.step(fixed[:-2], fixed[-2], fixed[-1])
            self.captured[shape] = graph, fixed, done
        graph, fixed, done = self.captured[shape]
        for to, tensor in zip(fixed, (*inputs, target)):
            to.copy_(tensor, non_blocking=True)
        fixed[-1].fill_(factor)
        graph.replay()
        return done
