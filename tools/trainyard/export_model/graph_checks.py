"""What trainyard cannot train in a graph, and what it warns of."""
import operator

import torch
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from .problems import Refused

# operators that draw random numbers per sample, which trainyard can split into the parts of a batch
DROPOUT = {f"aten.{name}.default" for name in ("dropout", "dropout_", "feature_dropout", "feature_dropout_",
                                               "scaled_dot_product_attention")}
REGIONS = {
    "wrap_with_set_grad_enabled": ("torch.no_grad", "detach the result in its place: x.detach()"),
    "wrap_with_autocast": ("torch.autocast", "remove it; the experiment file chooses the precision"),
    "cond": ("torch.cond", "choose values with torch.where"),
    "while_loop": ("while_loop", "use a Python loop with a fixed number of turns"),
}
SPLITTING = "ddp, pipeline and mp-ddp"  # strategies that split a batch


def graphs_of(program):
    """The graph and the graphs of its regions."""
    return [m.graph for m in program.graph_module.modules() if isinstance(m, torch.fx.GraphModule)]


def operator_name(target):
    """As PyTorch's file names it: "aten.linear.default"."""
    if isinstance(target, (torch._ops.OpOverload, torch._ops.HigherOrderOperator)):
        return str(target)
    return f"{getattr(target, '__module__', 'python')}.{getattr(target, '__name__', target)}"


def module_name(node):
    """ in blocks.0 (Attention)": the author's module of a node. Empty if it is not known."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    if not stack:
        return ""
    path, kind = stack[-1]
    return f" in {path or 'the network'} ({str(kind).rpartition('.')[2]})"


def argument(node, names):
    """(name, value) of the first argument of an operator that has one of these names. (None, None) if it has none."""
    for i, described in enumerate(node.target._schema.arguments):
        if described.name in names:
            value = node.args[i] if i < len(node.args) else node.kwargs.get(described.name, described.default_value)
            return described.name, value
    return None, None


def check_operators(program, allowed):
    """Refuse the first node that trainyard cannot execute."""
    for graph in graphs_of(program):
        for node in graph.nodes:
            # the file has no node for an item of a node's results: it names each result
            if node.op == "call_function" and node.target is not operator.getitem:
                check_operator(node, allowed)


def check_operator(node, allowed):
    target, name = node.target, operator_name(node.target)
    where = f"node {node.name}{module_name(node)}"
    if isinstance(target, torch._ops.HigherOrderOperator):
        what, advice = REGIONS.get(target.name(), (target.name(), "write this part without it"))
        raise Refused(f"{where} is a region of {what}, which trainyard does not execute", advice)
    if "_functorch" in name:
        raise Refused(f"{where} comes from torch.vmap or torch.func", "write it with batched operators, such as einsum")
    if isinstance(target, torch._ops.OpOverload) and target.namespace != "aten":
        raise Refused(f"{where} calls the custom operator {target.namespace}::{target._opname}",
                      "write it with operators of PyTorch")
    if name not in allowed:
        raise Refused(f"{where} calls {name}, which trainyard does not execute", "write it with other operators")


def draws(node):
    """Whether a node draws random numbers."""
    if not isinstance(node.target, torch._ops.OpOverload) or torch.Tag.nondeterministic_seeded not in node.target.tags:
        return False
    name, probability = argument(node, ("dropout_p", "dropout", "p"))
    _, training = argument(node, ("train", "training"))
    return bool(probability or name is None) and training is not False


def random_nodes(traced):
    """The nodes of training whose random numbers trainyard cannot split into samples; if there are none, those of evaluation."""
    def of(program, rules):
        return [node for graph in graphs_of(program) for node in graph.nodes
                if draws(node) and operator_name(node.target) not in DROPOUT and node.name not in rules]

    return of(traced.program, traced.rules) or of(traced.evaluation, traced.rules_in_evaluation)


def unused_parameters(program):
    """Names of the parameters that no node reads, neither under this name nor under one that is tied to it."""
    used = {node.name for node in program.graph.nodes if node.op == "placeholder" and node.users}
    names = program.graph_signature.inputs_to_parameters

    def memory(name):
        return program.state_dict[name].untyped_storage().data_ptr()

    read = {memory(name) for node, name in names.items() if node in used}
    return [name for name in names.values() if memory(name) not in read]


def warnings_of(traced):
    program, found, random = traced.program, [], {}
    for node in random_nodes(traced):
        random.setdefault(operator_name(node.target), []).append(node)
    for name, nodes in random.items():
        others = f" and {len(nodes) - 1} others draw" if len(nodes) > 1 else " draws"
        found.append(f"node {nodes[0].name}{module_name(nodes[0])}{others} random numbers with {name}: "
                     f"{SPLITTING} split a batch, and get other numbers than single")
    if not traced.splits:
        found.append(f"the output of a sample depends on the other samples of its batch: {SPLITTING} split a batch, "
                     "and train something else than single")
    for name in unused_parameters(program):
        found.append(f"no node reads the parameter {name}: it is not trained")
    for graph in graphs_of(program):
        for node in graph.nodes:
            if node.op == "call_function" and free_unbacked_symbols(node.meta.get("val")):
                found.append(f"the result of node {node.name}{module_name(node)} depends on the data: "
                             "its size or number is known only while the step runs")
                break
    return found


def strip_sources(program):
    """Remove the author's paths and source lines from all nodes."""
    for module in program.graph_module.modules():
        for node in getattr(module, "graph", torch.fx.Graph()).nodes:
            node.meta.pop("stack_trace", None)


def count_nodes(program):
    return sum(node.op == "call_function" for graph in graphs_of(program) for node in graph.nodes)
