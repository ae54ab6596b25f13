"""torch.export in training form, with a symbolic batch and, for tokens, a symbolic length."""
import contextlib
import dataclasses
import io
import itertools
import re
import sys

import torch

from . import recurrent, tasks
from .problems import Refused, first_line, local_types, module_of, place_of
from .user_function import values_of


LONGEST = 2048  # from this length on, no bound is looked for


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
    rules: dict = dataclasses.field(default_factory=dict)  # of random nodes in training, see splitting.py
    rules_in_evaluation: dict = dataclasses.field(default_factory=dict)
    splits: bool = True  # the parts of a batch compute what the batch computes


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


def accepts(module, inputs):
    """Whether PyTorch computes the output of these inputs."""
    try:
        with torch.no_grad():
            module(*[x.clone() for x in inputs])
    except Exception:
        return False
    return True


def longest(module, inputs, symbol):
    """The longest length that PyTorch accepts, for one sample. None if that is LONGEST or more."""
    accepted, refused = symbol.example, None
    while refused is None and accepted < LONGEST:
        size = min(2 * accepted, LONGEST)
        accepted, refused = (size, None) if accepts(module, with_size(inputs, symbol, size)) else (accepted, size)
    while refused is not None and refused - accepted > 1:
        size = (accepted + refused) // 2
        accepted, refused = (size, refused) if accepts(module, with_size(inputs, symbol, size)) else (accepted, size)
    return accepted if refused is not None else None


def lengths(network, batch):
    """Dimension 1 of the token inputs. The inputs of a translation have a length each."""
    tokens = [i for i, x in enumerate(network.inputs) if x.dtype == torch.int64 and x.dim() >= 2 and x.size(1) > 1]
    groups = {}
    for i in tokens:
        groups.setdefault(i if tasks.ROWS[network.task]["target"] == "translation" else network.inputs[i].size(1), []).append(i)
    names = ["length", "steps"] if len(groups) < 3 else [f"length_{n + 1}" for n in range(len(groups))]
    found, module = [], network.fresh().eval()  # in training one sample can be too few
    one = with_size(network.inputs, batch, 1)
    for name, inputs in zip(names, groups.values()):
        symbol = Symbol(name, inputs, 1, network.inputs[inputs[0]].size(1))
        if accepts(module, with_size(one, symbol, symbol.example - 1)):
            symbol.most = longest(module, one, symbol)
            found.append(symbol)
    return found


def set_bounds(module, network, symbols):
    """Lower `most` of the lengths to the bounds that torch.export finds by itself."""
    program = export(module, network, symbols, free=True)
    placeholders = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    for symbol in symbols[1:]:
        size = placeholders[program.graph_signature.user_inputs[symbol.inputs[0]]].meta["val"].shape[symbol.dimension]
        if isinstance(size, torch.SymInt) and size.node.expr in program.range_constraints:
            upper = program.range_constraints[size.node.expr].upper
            if upper.is_Integer and int(upper) < sys.maxsize // 2:
                symbol.most = min(int(upper), symbol.most or int(upper))


@contextlib.contextmanager
def without_disabled_autocast():
    """torch.autocast(enabled=False) changes nothing while no autocast is active, but torch.export would make a region of it."""
    kind, (enter, leave) = torch.autocast, (torch.autocast.__enter__, torch.autocast.__exit__)
    kind.__enter__ = lambda self: enter(self) if self._enabled else self
    kind.__exit__ = lambda self, *error: leave(self, *error) if self._enabled else False
    try:
        yield
    finally:
        kind.__enter__, kind.__exit__ = enter, leave


def export(module, network, symbols, free=False):
    inputs = tuple(x.clone() for x in network.inputs)
    shapes, sizes = torch.export.ShapesCollection(), [{} for _ in inputs]
    for symbol in symbols:
        dimension = torch.export.Dim(symbol.name, min=1, max=symbol.most)
        dimension = torch.export.Dim.DYNAMIC if free and symbol.dimension == 1 else dimension
        for i in symbol.inputs:
            sizes[i][symbol.dimension] = dimension
    for x, of_input in zip(inputs, sizes):
        shapes[x] = of_input
    # PyTorch prints graphs beside its errors
    quiet = contextlib.nullcontext if network.verbose else lambda: contextlib.redirect_stderr(io.StringIO())
    with quiet(), contextlib.redirect_stdout(sys.stderr), recurrent.as_nodes(), without_disabled_autocast():
        return without_default_bounds(recurrent.put_back(torch.export.export(module, inputs, dynamic_shapes=shapes)))


def without_default_bounds(program):
    """x.uniform_() as x.copy_(rand_like(x)): PyTorch cannot read a file with it, as its argument is called `from`."""
    for module in program.graph_module.modules():
        for node in list(getattr(module, "graph", torch.fx.Graph()).nodes):
            if node.op != "call_function" or node.target is not torch.ops.aten.uniform_.default or node.args[1:] not in ((), (0, 1)):
                continue
            with module.graph.inserting_before(node):
                drawn = module.graph.call_function(torch.ops.aten.rand_like.default, node.args[:1])
                copied = module.graph.call_function(torch.ops.aten.copy_.default, (node.args[0], drawn))
            drawn.meta, copied.meta = dict(node.meta), dict(node.meta)
            node.replace_all_uses_with(copied)
            module.graph.erase_node(node)
            module.recompile()
    return program


def refuse(module, network, error):
    """What torch.export could not do, as one line with the place in the user's code."""
    text, where, place = str(error), module_of(error, module), place_of(error)
    where = (f" in {where}" if where else "") + ("" if module.training else " in evaluation")
    name = type(error).__name__
    if "PackedSequence" in local_types(error):
        problem = (f"packed sequences{where} cannot be exported",
                   "run the recurrent layer over the padded sequences")
    elif name == "GuardOnDataDependentSymNode" or "data-dependent" in text.lower():
        causal = {"TransformerEncoder": "is_causal", "TransformerDecoder": "tgt_is_causal"}.get(where.rpartition("(")[2].rstrip(")"))
        problem = (f"the control flow{where} depends on values of a tensor",
                   f"pass {causal}=True beside its mask" if causal else
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
    wanted = lengths(network, batch)
    for count in range(len(wanted), -1, -1):
        for chosen in itertools.combinations(wanted, count):
            symbols = [batch, *chosen]
            for attempt in ("with the bounds of eager PyTorch", "with those of torch.export"):
                try:
                    if attempt.endswith("torch.export"):
                        set_bounds(network.fresh(), network, symbols)
                    module = network.fresh()
                    program = export(module, network, symbols)
                    module = in_evaluation(network.fresh())
                    evaluation = export(module, network, symbols)
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
                return Traced(program, evaluation, symbols, fixed)
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
