"""Seq2Seq in PyTorch. A module has the number of the layer in trainyard."""
import torch
from torch import nn


def encode_packed(lstm, x, lengths):
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    y, state = lstm(packed)
    return nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=x.shape[1])[0], state


def encode_unpacked(lstm, x, lengths):
    """encode_packed without lengths on the host, for CUDA graphs. Each sentence is moved to the end of its row. On the
    padding before it one more input closes the input gate, so that the state stays 0."""
    (batch, length, inputs), hidden = x.shape, lstm.hidden_size
    time, lengths = torch.arange(length, device=x.device), lengths[:, None]
    places = (time + lengths) % length
    padding = nn.functional.pad((time < length - lengths)[..., None].to(x.dtype), (0, 7 - inputs % 8))
    closing = x.new_zeros(4 * hidden, padding.shape[2])
    closing[:hidden, 0] = -1e4
    weights = [torch.cat([lstm.weight_ih_l0, closing], 1), lstm.weight_hh_l0, lstm.bias_ih_l0, lstm.bias_hh_l0]
    flat = torch.cat([weight.flatten() for weight in weights]).split([weight.numel() for weight in weights])
    weights = [part.view(weight.shape) for part, weight in zip(flat, weights)]  # in one piece of memory, as cuDNN requires
    x = torch.cat([x.gather(1, places[..., None].expand_as(x)), padding], 2)
    zeros = x.new_zeros(1, batch, hidden)
    y, h, c = torch._VF.lstm(x, (zeros, zeros), weights, True, 1, 0.0, lstm.training, False, True)
    back = (time - lengths) % length
    return y.gather(1, back[..., None].expand_as(y)), (h, c)


class Seq2Seq(nn.Module):
    def __init__(self, values, shape):
        super().__init__()
        self.encode = encode_packed
        embedding, hidden, self.depth = values["embedding"], values["hidden"], values["layers"]

        def lstms():
            inputs = embedding
            for _ in range(self.depth):
                yield nn.Dropout(values["dropout"])
                yield nn.LSTM(inputs, hidden, batch_first=True)
                inputs = hidden

        chain = [nn.Embedding(shape["vocabulary"], embedding, padding_idx=0), *lstms(),
                 nn.Embedding(shape["target_vocabulary"], embedding, padding_idx=0), *lstms(),
                 nn.Linear(hidden, shape["target_vocabulary"])]
        for place, layer in enumerate(chain):
            self.add_module(str(place), layer)

    def forward(self, source, target):
        chain = list(self.children())
        lengths = source.ne(0).sum(1)
        if self.encode is encode_packed:
            lengths = lengths.cpu()  # packing requires lengths on the CPU
        x, states = chain[0](source), []
        for i in range(self.depth):
            x, state = self.encode(chain[2 + 2 * i], chain[1 + 2 * i](x), lengths)
            states.append(state)
        decoder = 1 + 2 * self.depth
        x = chain[decoder](target)
        for i in range(self.depth):
            x, _ = chain[decoder + 2 + 2 * i](chain[decoder + 1 + 2 * i](x), states[i])
        return chain[-1](x)


def build(values, shape):
    return Seq2Seq(values, shape)


def without_lengths(network):
    """Let `network` encode without lengths on the host."""
    network.encode = encode_unpacked
