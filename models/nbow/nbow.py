"""The neural bag of words in PyTorch."""
from torch import nn


def build(values, shape):
    return nn.Sequential(nn.EmbeddingBag(shape["vocabulary"], values["embedding"], mode="mean", padding_idx=0),
                         nn.Dropout(values["dropout"]), nn.Linear(values["embedding"], shape["classes"]))
