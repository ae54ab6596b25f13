"""A GPT in PyTorch, as in nanoGPT. A module has the number of the layer in trainyard."""
import math

import torch
from torch import nn
from torch.nn import functional


class Embedding(nn.Module):
    def __init__(self, vocabulary, positions, width):
        super().__init__()
        self.weight, self.positions = nn.Parameter(torch.empty(vocabulary, width)), nn.Parameter(torch.empty(positions, width))

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return functional.embedding(tokens, self.weight) + functional.embedding(places, self.positions)


class Attention(nn.Module):
    def __init__(self, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout

    def forward(self, x):
        q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in x.chunk(3, 2))
        dropout = self.dropout if self.training else 0.0
        y = functional.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        return y.transpose(1, 2).flatten(2)


class Add(nn.Module):
    def forward(self, x, skip):
        return x + skip


class Head(nn.Module):
    def forward(self, x, weight):
        return functional.linear(x, weight)


class GPT(nn.Module):
    def __init__(self, values, shape):
        super().__init__()
        width, bias, dropout = values["width"], values["bias"], values["dropout"]
        layers, self.skips = [Embedding(shape["vocabulary"], shape["source_length"], width), nn.Dropout(dropout)], set()
        residual = []
        for _ in range(values["layers"]):
            for inner in ([nn.Linear(width, 3 * width, bias), Attention(values["heads"], dropout)],
                          [nn.Linear(width, 4 * width, bias), nn.GELU()]):
                self.skips.add(len(layers))
                residual.append(nn.Linear(width if isinstance(inner[1], Attention) else 4 * width, width, bias))
                layers += [nn.LayerNorm(width, bias=bias), *inner, residual[-1], nn.Dropout(dropout), Add()]
        layers.append(nn.LayerNorm(width, bias=bias))
        layers.append(Head() if values["tied_head"] else nn.Linear(width, shape["vocabulary"], bias=False))
        for place, layer in enumerate(layers):
            self.add_module(str(place), layer)
            for name, parameter in layer.named_parameters():
                deviation = 0.02 / math.sqrt(2 * values["layers"]) if layer in residual else 0.02
                if parameter.dim() > 1:
                    nn.init.normal_(parameter, std=deviation)
                elif name == "bias":
                    nn.init.zeros_(parameter)

    def forward(self, x):
        layers, skip = list(self.children()), None
        for place, layer in enumerate(layers):
            if place in self.skips:
                skip = x
            x = layer(x, skip) if isinstance(layer, Add) else layer(x, layers[0].weight) if isinstance(layer, Head) else layer(x)
        return x


def build(values, shape):
    return GPT(values, shape)
