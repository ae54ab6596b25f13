"""The user's function: found, called, and its result as a `Network`."""
import contextlib
import dataclasses
import importlib.util
import inspect
import io
import itertools
import pathlib
import random
import sys

import torch

from . import groups, own_loss, tasks
from .problems import Refused, first_line, place_of

RETURNS = "return (module, example_inputs), and behind them, if you like, a task, a loss and an optimizer"
DEFAULT_BATCH = 4


@dataclasses.dataclass
class Network:
    name: str  # "net.py:build"
    build: object  # the user's function without arguments
    numbers: tuple  # state of the random numbers before its first call
    module: torch.nn.Module  # of the first call, on the CPU, in training mode
    inputs: tuple  # tensors [batch, …] with at least two samples
    task: str = ""  # empty: found by the sizes
    loss: object = None  # the user's own, of (outputs, targets)
    reductions: dict = dataclasses.field(default_factory=dict)  # "mean", "sum" or "weighted" by name; empty: it has no targets yet
    optimizer: object = None  # of the parameters of `module`
    warnings: list = dataclasses.field(default_factory=list)
    verbose: bool = False

    def fresh(self):
        """The module of another call, with the values of the first one. A step, or an export, changes a module."""
        set_random_state(self.numbers)
        module = self.of_another_call()
        set_values(module, values_of(self.module))
        return module

    def of_seed(self, seed):
        """The module of a call under this seed."""
        seed_random_numbers(seed)
        return self.of_another_call()

    def of_another_call(self):
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                result = self.build()
                module = prepared(result[0], next(self.module.parameters()).dtype)
                if self.reductions:
                    module = own_loss.with_loss(module, own_loss.per_sample(loss_in(result)), self.reductions)
                if self.optimizer:
                    groups.freeze_others(module, optimizer_in(result))
        except (Exception, SystemExit) as error:
            raise Refused(f"{self.name} fails if it is called again: {first_line(error)}",
                          "make it work in each call; --verbose prints the traceback", place_of(error)) from error
        if set(map(id, module.parameters())) & set(map(id, self.module.parameters())):
            raise Refused(f"{self.name} returns the same parameters in each call", "make the network inside the function")
        first, own = values_of(self.module), values_of(module)
        if [(name, x.shape) for name, x in first.items()] != [(name, x.shape) for name, x in own.items()]:
            raise Refused(f"{self.name} returns another network in each call",
                          "make parameters and buffers with the same names and sizes in each call")
        return module


def loss_in(result):
    """What the function returns behind the inputs and can be called: the loss."""
    return next((x for x in result[2:] if callable(x) and not isinstance(x, torch.optim.Optimizer)), None)


def optimizer_in(result):
    return next((x for x in result[2:] if isinstance(x, torch.optim.Optimizer)), None)


def seed_random_numbers(seed):
    """Seed all generators that a function may draw from."""
    torch.manual_seed(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)


def random_state():
    """The state of all generators that a function may draw from."""
    numpy = sys.modules.get("numpy")
    return torch.get_rng_state(), random.getstate(), numpy and numpy.random.get_state()


def set_random_state(state):
    torch.set_rng_state(state[0])
    random.setstate(state[1])
    if state[2]:
        sys.modules["numpy"].random.set_state(state[2])


def values_of(module):
    """Parameters and buffers by name, also those that state_dict leaves out."""
    return dict(itertools.chain(module.named_parameters(remove_duplicate=False), module.named_buffers(remove_duplicate=False)))


def set_values(module, values):
    """Copy the values that the module has names for."""
    with torch.no_grad():
        for name, x in values_of(module).items():
            if name in values:
                x.copy_(values[name])


def prepared(module, dtype=None):
    """The module on the CPU and in training mode, in this type if it has another one."""
    module = module.cpu() if module.training else module.cpu().train()
    return module.to(dtype) if dtype and next(module.parameters()).dtype != dtype else module


def imported(file):
    """The user's file as a Python module, as `python FILE` would find its imports."""
    sys.path.insert(0, str(file.resolve().parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise Refused(f"the file cannot be run: {first_line(error)}", "correct it; --verbose prints the traceback",
                      place_of(error) or str(file)) from error
    return module


def takes_batch(function, name):
    """Whether the batch size is passed to the function."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if len(required) > 1 or (required and required[0] not in positional):
        raise Refused(f"{name} requires {len(required)} arguments", "take no argument, or only the batch size")
    return bool(required) or bool(positional and positional[0].name in ("batch", "batch_size"))


def resized(tensor, batch):
    """`batch` samples, repeated if there are fewer."""
    return tensor.index_select(0, torch.arange(batch) % tensor.size(0))


def checked_inputs(inputs, name):
    inputs = (inputs,) if isinstance(inputs, torch.Tensor) else inputs
    if not isinstance(inputs, (tuple, list)) or not inputs or not all(isinstance(x, torch.Tensor) for x in inputs):
        raise Refused(f"the example inputs of {name} are not tensors", "give a tensor, or a tuple of tensors")
    inputs = tuple(x.detach().cpu() for x in inputs)
    sizes = {x.size(0) if x.dim() else None for x in inputs}
    if len(sizes) > 1 or None in sizes or 0 in sizes:
        raise Refused(f"the example inputs of {name} have the sizes {', '.join(str(list(x.shape)) for x in inputs)}",
                      "the first dimension of each must be the same batch")
    for x in inputs:
        if x.dtype not in (torch.float32, torch.float64, torch.int64, torch.bool):
            raise Refused(f"an example input of {name} has the type {x.dtype}", "give float32, float64, int64 or bool")
    return inputs


def called(function, name, batch):
    """The network that the user's function returns."""
    arguments = (batch or DEFAULT_BATCH,) if takes_batch(function, name) else ()
    seed_random_numbers(0)  # so that the same function gives the same file
    numbers = random_state()
    try:
        result = function(*arguments)
    except (Exception, SystemExit) as error:
        raise Refused(f"{name} failed: {first_line(error)}", "correct it; --verbose prints the traceback",
                      place_of(error)) from error
    if not isinstance(result, tuple) or len(result) < 2:
        raise Refused(f"{name} returns {type(result).__name__}", RETURNS)
    module, inputs = result[:2]
    task = next((x for x in result[2:] if isinstance(x, str)), "")
    loss, optimizer = loss_in(result), optimizer_in(result)
    if len(result) - 2 != bool(task) + (loss is not None) + (optimizer is not None):
        raise Refused(f"{name} returns {', '.join(type(x).__name__ for x in result)}", RETURNS)
    if not isinstance(module, torch.nn.Module):
        raise Refused(f"{name} returns {type(module).__name__} as its module", RETURNS)
    if task and task not in tasks.ROWS:
        raise Refused(f'{name} returns the task "{task}"', f"the tasks are {', '.join(tasks.ROWS)}")
    network = Network(name, lambda: function(*arguments), numbers, module, checked_inputs(inputs, name), task, loss,
                      optimizer=optimizer)
    if not module.training:
        network.warnings.append("the network was in evaluation mode; it is exported in training mode")
    prepared(module)
    # with one sample, torch.export fixes the batch
    batch = max(2, batch or network.inputs[0].size(0))
    network.inputs = tuple(resized(x, batch) for x in network.inputs)
    return network


def load(function_of_file, batch, double):
    """The network of "FILE.py:FUNCTION", as float64 if `double`."""
    path, _, function_name = function_of_file.rpartition(":")
    file = pathlib.Path(path)
    if not file.is_file():
        raise Refused(f"there is no file {path}", "write FILE.py:FUNCTION with the path of a Python file")
    seed_random_numbers(0)
    function = getattr(imported(file), function_name, None)
    if not callable(function):
        raise Refused(f"{path} has no function {function_name}", "define it at the top of the file, or name another")
    network = called(function, f"{file.name}:{function_name}", batch)
    if double:
        network.module.double()
        network.inputs = tuple(x.double() if x.is_floating_point() else x for x in network.inputs)
    check_types(network)
    check_hooks(network.module)
    return network


def check_hooks(module):
    """Refuse hooks on parameters: no graph has them."""
    for name, p in module.named_parameters():
        if p._backward_hooks or p._post_accumulate_grad_hooks:
            raise Refused(f"the parameter {name} has a hook, which would be lost",
                          "remove it before the function returns, and do its work in forward")


def check_types(network):
    types = {p.dtype for p in network.module.parameters()}
    if not types:
        raise Refused(f"the network of {network.name} has no parameters", "return a network that can be trained")
    if len(types) > 1 or not types <= {torch.float32, torch.float64}:
        raise Refused(f"the parameters of {network.name} have the types {', '.join(sorted(map(str, types)))}",
                      "make all float32 with module.float(), or all float64 with --double")
    for x in network.inputs:
        if x.is_floating_point() and x.dtype not in types:
            raise Refused(f"an input of {network.name} is {x.dtype}, but the parameters are {types.pop()}",
                          "give both the same type")
