"""Recurrent layers as one node each, with a symbolic length.

torch.export runs aten.lstm and its relatives step by step, and so fixes the length. It keeps operators that it does not
know. So they are replaced while it traces, and put back in the graph."""
import contextlib
from unittest import mock

import torch

KEPT = torch.library.Library("trainyard", "DEF")
OPERATORS = {name: getattr(torch.ops.aten, name).input for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")}


def output_like(x, state, bidirectional):
    return x.new_empty([*x.shape[:2], state.size(2) * (2 if bidirectional else 1)])


def sizes_of_lstm(x, states, weights, has_biases, layers, dropout, train, bidirectional, batch_first):
    h, c = states
    return output_like(x, h, bidirectional), torch.empty_like(h), torch.empty_like(c)


def sizes_of_others(x, h, weights, has_biases, layers, dropout, train, bidirectional, batch_first):
    return output_like(x, h, bidirectional), torch.empty_like(h)


for _name, _operator in OPERATORS.items():
    KEPT.define(_name + "(" + str(_operator._schema).split("(", 1)[1])
    torch.library.register_fake(f"trainyard::{_name}", sizes_of_lstm if _name == "lstm" else sizes_of_others, lib=KEPT)


def kept(name):
    """The function of `torch._VF` that nn.LSTM and its relatives call. Packed sequences have other arguments."""
    original, replacement = getattr(torch._VF, name), getattr(torch.ops.trainyard, name)
    return lambda *args: (replacement if isinstance(args[3], bool) else original)(*args)


@contextlib.contextmanager
def as_nodes():
    """While it is active, torch.export keeps recurrent layers."""
    with contextlib.ExitStack() as stack:
        for name in OPERATORS:
            stack.enter_context(mock.patch.object(torch._VF, name, kept(name)))
        yield


def put_back(program):
    """Name the operators of PyTorch in the nodes that were kept."""
    targets = {getattr(torch.ops.trainyard, name).default: operator for name, operator in OPERATORS.items()}
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            for node in module.graph.nodes:
                node.target = targets.get(node.target, node.target) if node.op == "call_function" else node.target
            module.recompile()
    return program
