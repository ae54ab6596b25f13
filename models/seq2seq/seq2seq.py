"""Seq2Seq in PyTorch. Modules are named by their place in trainyard's chain of layers."""
from torch import nn


class Seq2Seq(nn.Module):
    def __init__(self, values, shape):
        super().__init__()
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
        lengths = source.ne(0).sum(1).cpu()  # where packing wants them
        x, states = chain[0](source), []
        for i in range(self.depth):
            packed = nn.utils.rnn.pack_padded_sequence(chain[1 + 2 * i](x), lengths, batch_first=True,
                                                       enforce_sorted=False)
            y, state = chain[2 + 2 * i](packed)
            x, _ = nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=source.shape[1])
            states.append(state)
        decoder = 1 + 2 * self.depth
        x = chain[decoder](target)
        for i in range(self.depth):
            x, _ = chain[decoder + 2 + 2 * i](chain[decoder + 1 + 2 * i](x), states[i])
        return chain[-1](x)


def build(values, shape):
    return Seq2Seq(values, shape)
