"""Random numbers by sample, and whether the parts of a batch compute what the batch computes.

ddp and pipeline split a batch. A node that draws random numbers then needs numbers of its own for each sample. Slice j of a
dimension of size outer * batch * inner belongs to sample (j // inner) % batch. A rule is [dimension, inner]; inner 0 stands
for size // batch. Rules are guessed from the sizes of the graph, and count only if a batch and its parts compute the same."""
import copy
import zlib

import sympy
import torch

from .graph_checks import draws, graphs_of, operator_name
from .tracing import with_size
from .user_function import set_values, values_of

SIZED = {"aten.rand.default", "aten.randn.default"}  # their first argument is a list of sizes
LIKE = {f"aten.{name}" for name in ("rand_like.default", "randn_like.default", "bernoulli.default", "bernoulli.p", "bernoulli_.float",
                                    "uniform_.default", "normal_.default", "dropout.default", "dropout_.default",
                                    "feature_dropout.default", "feature_dropout_.default")}
ATTENTION = "aten.scaled_dot_product_attention.default"
INNER = (0, 1)  # that are tried if a dimension is a multiple of the batch
SAMPLES = 3
TOLERANCE = 1e-9


def random_of(program):
    return [node for graph in graphs_of(program) for node in graph.nodes if draws(node)]


def rule_of(node, batch, inner):
    """The rule of a random node by its sizes. None if there is none."""
    name = operator_name(node.target)
    if name not in SIZED | LIKE:
        return None
    shape = (node if name in SIZED else node.args[0]).meta["val"].shape
    places = [(d, size.node.expr) for d, size in enumerate(shape)
              if isinstance(size, torch.SymInt) and batch in size.node.expr.free_symbols]
    if len(places) != 1:
        return None
    dimension, size = places[0]
    if "feature" in name and dimension != 0:
        return None
    multiple = sympy.simplify(size / batch)
    if batch in multiple.free_symbols:
        return None
    return [dimension, 0 if multiple == 1 else inner]


def in_double(x):
    if isinstance(x, torch.Tensor) and x.dtype == torch.float32:
        return x.double()
    return torch.float64 if x is torch.float32 else x


def module_in_double(program):
    """The graph with float64 in place of float32. Constant parameters get noise, as those of zeros hide a branch."""
    module = copy.deepcopy(program).module()
    for node in module.graph.nodes:
        node.args = torch.fx.node.map_aggregate(node.args, in_double)
        node.kwargs = torch.fx.node.map_aggregate(node.kwargs, in_double)
    numbers = torch.Generator().manual_seed(1)
    values = {}
    for name, x in values_of(module.double()).items():
        constant = x.is_floating_point() and x.requires_grad and x.numel() > 1 and bool((x == x.flatten()[0]).all())
        values[name] = x.detach() + 0.1 * torch.randn(x.shape, generator=numbers, dtype=x.dtype) if constant else x.detach()
    set_values(module, values)
    for name, x in list(vars(module).items()) + list(module.__dict__.get("_buffers", {}).items()):
        if isinstance(x, torch.Tensor) and x.dtype == torch.float32:
            setattr(module, name, x.double())
    return module


class ByPart(torch.fx.Interpreter):
    """Computes some samples of a batch. `statistics`: those of batch normalisation of the whole batch, by node."""

    def __init__(self, module, rules, samples, statistics):
        super().__init__(module)
        self.rules, self.samples, self.statistics = rules, samples, statistics

    def run_node(self, node):
        if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
            return super().run_node(node)
        args, kwargs = self.fetch_args_kwargs_from_env(node)
        name = operator_name(node.target)
        if name == "aten.batch_norm.default" and args[5]:
            x, weight, bias, _, _, _, _, eps = args[:8]
            dims = [d for d in range(x.dim()) if d != 1]
            mean, variance = self.statistics.setdefault(node.name, (x.mean(dims), x.var(dims, unbiased=False)))
            return torch.nn.functional.batch_norm(x, mean, variance, weight, bias, False, 0.0, eps)
        if name == ATTENTION and draws(node):
            return torch.cat([self.drawn(node, k, [x[k:k + 1] if isinstance(x, torch.Tensor) and x.size(0) == len(self.samples) else x
                                                   for x in args], kwargs) for k in range(len(self.samples))])
        if node.name not in self.rules:
            return super().run_node(node)
        (dimension, inner), count = self.rules[node.name], len(self.samples)
        x = args[0] if name in LIKE else torch.empty(args[0], dtype=torch.float64)
        size = x.size(dimension)
        owners = torch.arange(size).div(inner or size // count, rounding_mode="floor") % count
        result = None
        for k in range(count):
            own = (owners == k).nonzero().flatten()
            first = x.index_select(dimension, own)
            part = self.drawn(node, k, (first if name in LIKE else list(first.shape), *args[1:]), kwargs)
            result = part.new_empty(x.shape) if result is None else result
            result = result.index_copy(dimension, own, part)
        return x.copy_(result) if node.target._opname.endswith("_") else result

    def drawn(self, node, k, args, kwargs):
        torch.manual_seed(zlib.crc32(node.name.encode()) + self.samples[k])
        return node.target(*args, **kwargs)


def is_close(whole, parts):
    limit = TOLERANCE * max(whole.abs().nan_to_num(0, 0, 0).max().item(), 1e-30)
    return bool(((whole - parts).abs().where(whole != parts, 0) <= limit).all())


def splits(program, inputs, rules):
    """Whether a batch and its parts compute the same with numbers by these rules."""
    statistics = {}

    def of(samples):
        module = module_in_double(program)  # a node may overwrite buffers
        usual = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            with torch.no_grad():
                found = ByPart(module, rules, samples, statistics).run(*[in_double(x[samples]) for x in inputs])
        finally:
            torch.set_default_dtype(usual)
        output, *losses = found if isinstance(found, (tuple, list)) else [found]
        return output, sum((values.sum() for values in losses), torch.zeros((), dtype=torch.float64))

    try:
        whole, loss = of(list(range(SAMPLES)))
        (first, first_loss), (others, other_losses) = of([0]), of(list(range(1, SAMPLES)))
        parts = torch.cat([first, others])
    except Exception:
        return False
    return whole.shape == parts.shape and is_close(whole, parts) and is_close(loss, first_loss + other_losses)


def rules_of(program, network, symbols):
    """(rules of the random nodes by name, whether a batch can be split). Without rules a batch is not tried."""
    random = random_of(program)
    placeholder = next(node for node in program.graph.nodes if node.name == program.graph_signature.user_inputs[0])
    batch = placeholder.meta["val"].shape[0].node.expr
    inputs = with_size(network.inputs, symbols[0], SAMPLES)
    for inner in INNER:
        rules = {node.name: rule_of(node, batch, inner) for node in random if operator_name(node.target) != ATTENTION}
        if None in rules.values():
            return {}, True
        if splits(program, inputs, rules):
            return rules, True
        if all(rule[1] != inner or inner == 1 for rule in rules.values()):
            break
    return {}, False
