"""torch.export in training form, with a symbolic batch and, for tokens, a symbolic length."""
import contextlib
import dataclasses
import io
import itertools
import re
import sys

import torch

from . import recurrent
from .problems import Refused, first_line, local_types, module_of, place_of
from .user_function import values_of


@dataclasses.dataclass
class Symbol:
    """A size that may differ between batches."""

    name: str  # "batch", "length", "steps"
    inputs: list  # numbers of the inputs that have it
    dimension: int
    example: int
    most: int | None = None  # None: no bound is known


@dataclasses.dataclass
class Traced:
    program: torch.export.ExportedProgram
    evaluation: torch.export.ExportedProgram
    symbols: list  # the first one is the batch
    fixed: list  # lengths that could not become symbolic


def in_evaluation(module):
    """The module after eval(), which must not change its values."""
    before = {name: x.detach().clone() for name, x in values_of(module).items()}
    after = values_of(module.eval())
    for name in before | after:
        if name not in before or name not in after or not torch.equal(before[name], after[name]):
            raise Refused(f"eval() changes {name}", "leave parameters and buffers as they are, and choose in forward "
                          "by self.training what is computed")
    return module


def with_size(inputs, symbol, size):
    """The inputs with another size of this symbol: values are repeated or cut off."""
    changed = list(inputs)
    for i in symbol.inputs:
        kept = torch.arange(size) % inputs[i].size(symbol.dimension)
        changed[i] = inputs[i].index_select(symbol.dimension, kept)
    return tuple(changed)


def accepts(network, inputs):
    """Whether PyTorch computes a step of these inputs."""
    module = network.fresh()
    try:
        with torch.no_grad():
            module(*[x.clone() for x in inputs])
    except Exception:
        return False
    return True


def lengths(network):
    """Dimension 1 of the token inputs. The inputs of a translation have a length each."""
    tokens = [i for i, x in enumerate(network.inputs) if x.dtype == torch.int64 and x.dim() >= 2 and x.size(1) > 1]
    groups = {}
    for i in tokens:
        groups.setdefault(i if network.task == "translation" else network.inputs[i].size(1), []).append(i)
    names = ["length", "steps"] if len(groups) < 3 else [f"length_{n + 1}" for n in range(len(groups))]
    found = []
    for name, inputs in zip(names, groups.values()):
        symbol = Symbol(name, inputs, 1, network.inputs[inputs[0]].size(1))
        if not accepts(network, with_size(network.inputs, symbol, symbol.example - 1)):
            continue
        if not accepts(network, with_size(network.inputs, symbol, symbol.example + 1)):
            symbol.most = symbol.example
        found.append(symbol)
    return found


def export(module, network, symbols):
    inputs = tuple(x.clone() for x in network.inputs)
    shapes, sizes = torch.export.ShapesCollection(), [{} for _ in inputs]
    for symbol in symbols:
        dimension = torch.export.Dim(symbol.name, min=1, max=symbol.most)
        for i in symbol.inputs:
            sizes[i][symbol.dimension] = dimension
    for x, of_input in zip(inputs, sizes):
        shapes[x] = of_input
    # PyTorch prints graphs beside its errors
    quiet = contextlib.nullcontext if network.verbose else lambda: contextlib.redirect_stderr(io.StringIO())
    with quiet(), contextlib.redirect_stdout(sys.stderr), recurrent.as_nodes():
        return recurrent.put_back(torch.export.export(module, inputs, dynamic_shapes=shapes))


def refuse(module, network, error):
    """What torch.export could not do, as one line with the place in the user's code."""
    text, where, place = str(error), module_of(error, module), place_of(error)
    where = (f" in {where}" if where else "") + ("" if module.training else " in evaluation")
    name = type(error).__name__
    if "PackedSequence" in local_types(error):
        problem = (f"packed sequences{where} cannot be exported",
                   "run the recurrent layer over the padded sequences")
    elif name == "GuardOnDataDependentSymNode" or "data-dependent" in text.lower():
        problem = (f"the control flow{where} depends on values of a tensor",
                   "choose values with torch.where, or decide by an argument of the constructor")
    elif re.search("inferred to be a constant|specialized it to be a constant", text) and "batch" in text:
        problem = (f"the network runs only with a batch of {network.inputs[0].size(0)}",
                   "use x.size(0) or -1 in place of a fixed number of samples")
    elif "Constraints violated" in text:
        guard = [re.sub(r"L\['\w+'\]\.size\(\)\[0\]", "batch", line.strip(" -"))
                 for line in text.splitlines() if line.strip().startswith("- ")]
        guard = [line.partition("generated guard ")[2] or line for line in guard]
        problem = ("the network depends on the number of samples" + (f": {guard[0][:160]}" if guard else ""),
                   "remove conditions on x.size(0)")
    elif "DynamicOutputShape" in name:
        problem = (f"the size of a result{where} depends on the data: {first_line(error)}",
                   "compute with fixed sizes, or with a mask")
    elif "numpy" in text.lower():
        problem = (f"NumPy{where} cannot be exported", "compute with torch only")
    else:
        problem = (f"torch.export failed{where}: {first_line(error)}",
                   "change this part of the network; --verbose prints the traceback")
    raise Refused(*problem, place) from error


def trace(network):
    """The network as two graphs, with as many symbolic sizes as torch.export accepts."""
    batch = Symbol("batch", list(range(len(network.inputs))), 0, network.inputs[0].size(0))
    wanted = lengths(network)
    for count in range(len(wanted), -1, -1):
        for chosen in itertools.combinations(wanted, count):
            try:
                module = network.fresh()
                program = export(module, network, [batch, *chosen])
                module = in_evaluation(network.fresh())
                evaluation = export(module, network, [batch, *chosen])
            except Refused:
                raise
            except Exception as error:
                if count == 0:
                    refuse(module, network, error)
                continue
            check_batch(network, program)
            check_batch(network, evaluation)
            symbolic = {i for symbol in chosen for i in symbol.inputs}
            fixed = [i for i, x in enumerate(network.inputs)
                     if x.dtype == torch.int64 and x.dim() >= 2 and i not in symbolic]
            return Traced(program, evaluation, [batch, *chosen], fixed)
    raise AssertionError("not reached")


def check_batch(network, program):
    """The batch must be symbolic and may have one sample."""
    placeholders = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    for name in program.graph_signature.user_inputs:
        if name not in placeholders or isinstance(placeholders[name].meta["val"].shape[0], int):
            raise Refused(f"the network runs only with a batch of {network.inputs[0].size(0)}",
                          "use x.size(0) or -1 in place of a fixed number of samples")
        symbol = placeholders[name].meta["val"].shape[0].node.expr
        if int(program.range_constraints[symbol].lower) > 1:
            raise Refused(f"the network requires at least {program.range_constraints[symbol].lower} samples",
                          "remove conditions on x.size(0)")
