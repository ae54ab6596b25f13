"""What PyTorch computes in two training steps, and whether the graphs of a file compute the same.

After each step the network is evaluated. The file has the first step and its evaluation. Each batch gets a new network.
Dropout is off, because trainyard draws other random numbers. The loss is sum(output * cos([0, 1, 2, …])), over the
values of the output row by row: it has another gradient for each of them."""
import inspect

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree

from .graph_checks import argument
from .own_loss import first_tensor, one_tensor
from .problems import Refused, first_line, module_of, place_of
from .tracing import with_size
from .user_function import random_state, set_values, values_of

SEED = 7
LOSS = "sum(output * cos(arange(count)))"
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-9}  # relative to the largest value of its kind
DRAWN = ("rand", "rand_like", "randn", "randn_like")
DROPOUT_PROBABILITIES = ("p", "dropout_p")
LONGEST_STEP = 1e-3  # of the parameter that changes most between the steps


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


class Halves(TorchFunctionMode):
    """Draws 0.5 in place of random numbers, as trainyard does when it computes the reference."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        found, name = function(*args, **(kwargs or {})), getattr(function, "__name__", "")
        if name == "uniform_" and args[1:] in ((), (0, 1)):
            return found.fill_(0.5)
        return torch.full_like(found, 0.5) if name in DRAWN else found


class InDouble(TorchFunctionMode):
    """Reads float32 as float64: constants, and types that the network names. The values of constants stay those of float32."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        args, kwargs = _pytree.tree_map(in_double, (args, dict(kwargs or {})))
        found = (torch.Tensor.double if function is torch.Tensor.float else function)(*args, **kwargs)
        return found.float().double() if function is torch.tensor and found.dtype == torch.float64 else found

    def __enter__(self):
        self.usual = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        return super().__enter__()

    def __exit__(self, *error):
        torch.set_default_dtype(self.usual)
        return super().__exit__(*error)


def in_double(x):
    if isinstance(x, torch.Tensor) and x.dtype == torch.float32:
        return x.double()
    return torch.float64 if x is torch.float32 else x


def without_dropout(module):
    """The network with modules that drop nothing."""
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
    output = one_tensor(module(*[x.clone() for x in inputs]))
    loss = (output * weights_of(output)).sum()
    loss.backward()
    found = {"output": output.detach().contiguous(), "loss": loss.detach()}
    for name, p in module.named_parameters():
        if p.grad is not None:
            found[f"gradient/{name}"] = (p.grad.to_dense() if p.grad.is_sparse else p.grad).detach().contiguous()
    for name, buffer in module.named_buffers():
        found[f"buffer/{name}"] = buffer.detach().clone().contiguous()
    return found


def evaluated(module, inputs):
    """The output in evaluation, which must not change the network."""
    before = {name: x.clone() for name, x in module.named_buffers()}
    torch.manual_seed(SEED)
    output = one_tensor(module(*[x.clone() for x in inputs]))  # without gradients, layers of transformers leave out padding
    if not isinstance(output, torch.Tensor):
        raise Refused(f"the network gives {type(output).__name__} in evaluation", "give one tensor, as in training")
    for name, x in module.named_buffers():
        if not torch.equal(before[name], x):
            raise Refused(f"the network changes the buffer {name} in evaluation", "change it only if self.training is true")
    return output.detach().contiguous()


def evaluated_eagerly(module, inputs):
    flags = {each: each.training for each in module.modules()}
    output = evaluated(module.eval(), inputs)
    for each, training in flags.items():
        each.training = training
    return output


def descend(module, gradients, tied):
    """Change the parameters for the next step. In a file, tied parameters are several tensors with the same memory."""
    names = {name: same[0] for same in tied for name in same}
    largest = max((x.abs().max().item() for name, x in gradients.items() if name.startswith("gradient/")), default=0.0)
    different = {p.data_ptr(): (name, p) for name, p in module.named_parameters()}
    with torch.no_grad():
        for name, p in different.values():
            gradient = gradients.get(f"gradient/{names.get(name, name)}")
            if gradient is not None and 0 < largest < float("inf"):
                p.sub_(gradient * (LONGEST_STEP / largest))


def steps(module, evaluate, inputs, tied):
    """Two steps, each with the output "evaluation" after it."""
    found = [joined(step(module, inputs), tied)]
    found[0]["evaluation"] = evaluate(inputs)
    training, evaluation = ([*found[0][name].shape] for name in ("output", "evaluation"))
    if training != evaluation:
        raise Refused(f"the output has sizes {evaluation} in evaluation, but {training} in training", "give the same in both")
    descend(module, found[0], tied)
    try:
        found.append(joined(step(module, inputs), tied))
    except Exception as error:
        raise Refused(f"the second training step of the network fails: {first_line(error)}",
                      "compute in forward, in each step, what depends on parameters", place_of(error)) from error
    found[1]["evaluation"] = evaluate(inputs)
    return found


def of_pytorch(network, inputs, tied):
    """The steps of the author's network."""
    with WithoutDropout():
        module = without_dropout(network.fresh())
        before = str(random_state()[1:])
        found = steps(module, lambda x: evaluated_eagerly(module, x), inputs, tied)
    if str(random_state()[1:]) != before:
        raise Refused("the network draws random numbers of Python or NumPy in forward, which a graph has only once",
                      "draw them with torch")
    return found


def of_pytorch_in_double(network, inputs, tied):
    """Inputs, first step and evaluation of the author's network in float64, where right computations differ by 1e-11."""
    module = without_dropout(network.fresh()).double()
    inputs = tuple(map(in_double, inputs))
    with WithoutDropout(), Halves(), InDouble():
        found = joined(step(module, inputs), tied)
        found["evaluation"] = evaluated_eagerly(module, inputs)
    return {f"input/{i}": x for i, x in enumerate(inputs)} | found


def output_of(network):
    """The output of the network for its example. Refuses a network that does not give one tensor with gradients."""
    module = without_dropout(network.fresh())
    try:
        with WithoutDropout():
            output = module(*[x.clone() for x in network.inputs])
            output = one_tensor(output) if network.reductions else first_tensor(output) if network.loss else output
    except Exception as error:
        where = module_of(error, module)
        raise Refused(f"the network fails with its example inputs{' in ' + where if where else ''}: {first_line(error)}",
                      "give inputs that it accepts; --verbose prints the traceback", place_of(error)) from error
    if not isinstance(output, torch.Tensor):
        count = len(_pytree.tree_leaves(output))
        raise Refused(f"the network gives {type(output).__name__} with {count} values",
                      "wrap the network in a module whose forward returns one tensor: the logits, or the image")
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


def check_graphs(network, draft, tied, batches):
    """Refuse a file whose graphs do not compute what PyTorch computes. `batches`: {label: (inputs, steps)}."""
    dtype = next(network.module.parameters()).dtype
    functions = python_backward(output_of(network))
    # read again, because a graph in memory has the parameters of its module, with their hooks
    training, evaluation = (graph_without_dropout(torch.export.load(str(file))) for file in (draft.file, draft.evaluation))
    start = {name: x.detach().clone() for name, x in values_of(training).items()}
    names = values_of(network.module)  # constants of both graphs have the same names, but other values

    def evaluate(inputs):
        set_values(evaluation, {name: x for name, x in values_of(training).items() if name in names})
        return evaluated(evaluation, inputs)

    for inputs, expected in batches.values():
        set_values(training, start)
        found = steps(training, evaluate, inputs, tied)
        for when, each, own in zip(("", " in the second step"), expected, found):
            off = difference(each, own, dtype)
            if off is not None:
                refuse(*off, functions, f"{inputs[0].size(0)} samples{when}")


def refuse(what, how, functions, where):
    shown = what.replace("/", " of ", 1)
    if functions:
        raise Refused(f"the graph has lost the backward pass of the autograd.Function {functions[0]}: the {shown} is {how}",
                      "write it with detach: h + (f(h) - h).detach()")
    kind, _, name = what.partition("/")
    if (kind, how) == ("gradient", "missing"):
        raise Refused(f"the parameter {name} has a gradient in PyTorch, but none in the graph",
                      "read it in forward, in each step, and not through another tensor that was made before")
    raise Refused(f"the graph does not compute what PyTorch computes with {where}: the {shown} is {how}",
                  "remove what torch.export does not see, such as hooks and counters")


def batches_of(network, symbols, tied):
    """{"batch", "one", "other"}: (inputs, the steps of PyTorch) for the example, one sample, and other sizes."""
    batch = symbols[0]
    inputs = {"batch": network.inputs, "one": with_size(network.inputs, batch, 1)}
    other = with_size(network.inputs, batch, batch.example + 1)
    for symbol in symbols[1:]:
        other = with_size(other, symbol, symbol.example - 1)
    inputs["other"] = other
    found = {}
    for label, each in inputs.items():
        try:
            found[label] = (each, of_pytorch(network, each, tied))
        except Refused:
            raise
        except Exception as error:
            if label != "one":
                raise Refused(f"the network fails with {each[0].size(0)} samples: {first_line(error)}",
                              "make it work with any number of samples", place_of(error)) from error
            network.warnings.append(f"the network cannot train on a batch of one sample: {first_line(error)}. "
                                    "The graph does not check that; choose batch sizes whose parts are larger")
    return found
