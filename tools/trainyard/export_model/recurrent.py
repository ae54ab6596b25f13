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


def by_layer(operator, x, states, weights, has_biases, layers, dropout, train, bidirectional, batch_first):
    """One node per layer and dropout between them, whose numbers trainyard draws by sample. The result is the same."""
    single, directions = isinstance(states, torch.Tensor), 2 if bidirectional else 1
    states, count, last = (states,) if single else states, len(weights) // layers, []
    for layer in range(layers):
        own = [x[layer * directions:(layer + 1) * directions] for x in states]
        x, *left = operator(x, own[0] if single else own, weights[layer * count:(layer + 1) * count], has_biases, 1, 0.0, train,
                            bidirectional, batch_first)
        last.append(left)
        if layer + 1 < layers:
            x = torch.nn.functional.dropout(x, dropout, train)
    return x, *(torch.cat(each) for each in zip(*last))


def kept(name):
    """The function of `torch._VF` that nn.LSTM and its relatives call. Packed sequences have other arguments."""
    original, replacement = getattr(torch._VF, name), getattr(torch.ops.trainyard, name)

    def call(*args):
        if not isinstance(args[3], bool):
            return original(*args)
        layers, dropout, train = args[4:7]
        return by_layer(replacement, *args) if layers > 1 and dropout > 0 and train else replacement(*args)

    return call


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
