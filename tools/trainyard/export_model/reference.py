"""What PyTorch computes in one training step, and whether a graph computes the same.

Dropout is off, because trainyard draws other random numbers. The loss is sum(output * cos([0, 1, 2, …])), over the
values of the output row by row: it has another gradient for each of them."""
import inspect

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree

from .graph_checks import argument
from .problems import Refused, first_line, module_of, place_of
from .tracing import copied, with_size

SEED = 7
LOSS = "sum(output * cos(arange(count)))"
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-9}  # relative to the largest value of its kind
DROPOUT_PROBABILITIES = ("p", "dropout_p")


class WithoutDropout(TorchFunctionMode):
    """Calls dropout functions with probability 0."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name = getattr(function, "__name__", "")
        if name == "multi_head_attention_forward":
            bound = inspect.signature(function).bind(*args, **kwargs)
            bound.arguments["dropout_p"] = 0.0
            return function(*bound.args, **bound.kwargs)
        place = 4 if name == "scaled_dot_product_attention" else 1 if "dropout" in name else None
        if place is not None:
            given = [key for key in DROPOUT_PROBABILITIES if key in kwargs]
            if len(args) > place:
                args = (*args[:place], 0.0, *args[place + 1:])
            elif given:
                kwargs[given[0]] = 0.0
            elif place == 1:
                kwargs["p"] = 0.0
        return function(*args, **kwargs)


def without_dropout(module):
    """A copy of the network whose modules drop nothing."""
    module = copied(module)
    for each in module.modules():
        if isinstance(each, torch.nn.modules.dropout._DropoutNd):
            each.p = 0.0
        elif isinstance(each, (torch.nn.RNNBase, torch.nn.MultiheadAttention)):
            each.dropout = 0.0
    return module


def graph_without_dropout(program):
    """The graph of a file as a module whose nodes drop nothing."""
    module = program.module()
    for part in module.modules():
        for node in getattr(part, "graph", torch.fx.Graph()).nodes:
            target = node.target
            if not isinstance(target, torch._ops.OpOverload):
                continue
            drops = "dropout" in target._opname
            name, _ = argument(node, ("p",) if drops else ("dropout_p", "dropout"))
            if name:
                place = [each.name for each in target._schema.arguments].index(name)
                if place < len(node.args):
                    node.update_arg(place, 0.0)
                else:
                    node.update_kwarg(name, 0.0)
        if isinstance(part, torch.fx.GraphModule):
            part.recompile()
    return module


def weights_of(output):
    return torch.arange(output.numel(), dtype=torch.float64).cos().to(output.dtype).view(output.shape)


def step(module, inputs):
    """One forward and backward pass: {"output", "loss", "gradient/NAME" …, "buffer/NAME" …}."""
    module.zero_grad(set_to_none=True)
    torch.manual_seed(SEED)
    output = module(*[x.clone() for x in inputs])
    loss = (output * weights_of(output)).sum()
    loss.backward()
    found = {"output": output.detach().contiguous(), "loss": loss.detach()}
    for name, p in module.named_parameters():
        if p.grad is not None:
            found[f"gradient/{name}"] = (p.grad.to_dense() if p.grad.is_sparse else p.grad).detach().contiguous()
    for name, buffer in module.named_buffers():
        found[f"buffer/{name}"] = buffer.detach().clone().contiguous()
    return found


def of_pytorch(network, inputs):
    """The step of the author's network."""
    with WithoutDropout():
        return step(without_dropout(network.module), inputs)


def output_of(network):
    """The output of the network for its example. Refuses a network that does not give one tensor with gradients."""
    try:
        with WithoutDropout():
            output = without_dropout(network.module)(*[x.clone() for x in network.inputs])
    except Refused:
        raise
    except Exception as error:
        where = module_of(error, network.module)
        raise Refused(f"the network fails with its example inputs{' in ' + where if where else ''}: {first_line(error)}",
                      "give inputs that it accepts; --verbose prints the traceback", place_of(error)) from error
    if not isinstance(output, torch.Tensor):
        count = len(_pytree.tree_leaves(output))
        raise Refused(f"the network gives {type(output).__name__} with {count} values",
                      "give one tensor: the logits, or the image")
    if not output.requires_grad:
        raise Refused("the output of the network depends on no parameter with requires_grad",
                      "remove torch.no_grad and detach from forward")
    return output


def python_backward(output):
    """The names of the autograd.Function classes that computed this output."""
    found, seen, todo = set(), set(), [output.grad_fn]
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if isinstance(node, torch.autograd.function.BackwardCFunction):
            found.add(type(node).__name__.removesuffix("Backward"))
        todo += [each for each, _ in node.next_functions]
    return sorted(found)


def tied_names(module):
    """Names of the parameters that are one tensor."""
    names = {}
    for name, p in module.named_parameters(remove_duplicate=False):
        names.setdefault(id(p), []).append(name)
    return [same for same in names.values() if len(same) > 1]


def joined(found, tied):
    """The gradients of tied parameters under the first name, as sums over the parts of a file."""
    for same in tied:
        gradients = [found.pop(f"gradient/{name}") for name in same if f"gradient/{name}" in found]
        if gradients:
            found[f"gradient/{same[0]}"] = sum(gradients)
    return found


def difference(expected, found, dtype):
    """The first value that the graph computes otherwise: (name, how far off). None if all are the same."""
    largest = {}
    for name, x in expected.items():
        if x.is_floating_point() and x.isfinite().any():
            kind = name.partition("/")[0]
            largest[kind] = max(largest.get(kind, 0.0), x[x.isfinite()].abs().max().item())
    for name, x in expected.items():
        if name not in found:
            if not x.count_nonzero():
                continue
            return name, "missing"
        y = found[name]
        if x.shape != y.shape:
            return name, f"of size {list(y.shape)} in place of {list(x.shape)}"
        if not x.is_floating_point():
            if not torch.equal(x, y):
                return name, "another number"
            continue
        kind = name.partition("/")[0]
        scale = largest.get("output" if kind == "loss" else kind, 0.0)
        scale *= expected["output"].numel() ** 0.5 if kind == "loss" else 1
        limit = TOLERANCE[dtype] * max(scale, 1e-30)
        apart = (x.double() - y.double()).abs().where(x != y, 0)  # masks have equal infinities
        off = apart.max().item() if x.numel() else 0.0
        if not off <= limit:
            return name, f"{off:.2g} off"
    return None


def check_graph(network, file, tied, batches):
    """Refuse a file whose graph does not compute what PyTorch computes. `batches`: {label: (inputs, step)}."""
    dtype = next(network.module.parameters()).dtype
    functions = python_backward(output_of(network))
    for inputs, expected in batches.values():
        program = torch.export.load(str(file))  # each time, because a step writes its buffers
        found = joined(step(graph_without_dropout(program), inputs), tied)
        off = difference(expected, found, dtype)
        if off is None:
            continue
        what, how = off
        shown = what.replace("/", " of ", 1) if "/" in what else what
        if functions:
            raise Refused(f"the graph has lost the backward pass of the autograd.Function {functions[0]}: the {shown} is {how}",
                          "write it with detach: h + (f(h) - h).detach()")
        raise Refused(f"the graph does not compute what PyTorch computes with {inputs[0].size(0)} samples: the {shown} is {how}",
                      "remove calls that torch.export does not see, such as hooks")


def batches_of(network, symbols):
    """{"batch", "one", "other"}: (inputs, the step of PyTorch) for the example, one sample, and other sizes."""
    batch = symbols[0]
    inputs = {"batch": network.inputs, "one": with_size(network.inputs, batch, 1)}
    other = with_size(network.inputs, batch, batch.example + 1)
    for symbol in symbols[1:]:
        other = with_size(other, symbol, symbol.example - 1)
    inputs["other"] = other
    found = {}
    for label, each in inputs.items():
        try:
            found[label] = (each, of_pytorch(network, each))
        except Exception as error:
            if label != "one":
                raise Refused(f"the network fails with {each[0].size(0)} samples: {first_line(error)}",
                              "make it work with any number of samples", place_of(error)) from error
            network.warnings.append(f"the network cannot train on a batch of one sample: {first_line(error)}. "
                                    "The graph does not check that; choose batch sizes whose parts are larger")
    return found
