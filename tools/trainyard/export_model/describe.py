"""What extra/trainyard.json says: task, inputs, outputs, tied parameters, initial values and the reference."""
import torch

from . import groups, initial_values, reference, tasks
from .graph_checks import random_nodes
from .model_file import REFERENCE
from .problems import Refused

FORMAT = 1


def task_of(network, output, wanted):
    """The task that the user names, or the only one that the sizes fit."""
    sizes = f"its output is {list(output.shape)} for inputs of {', '.join(str(list(x.shape)) for x in network.inputs)}"
    task = wanted or network.task
    if task:
        row = tasks.ROWS[task]
        if not tasks.fits(task, network.inputs, output) and not (network.loss and not row["output"]):
            raise Refused(f"the network does not fit the task {task}: {sizes}", f"read {row['reads']}, and give {row['gives']}")
        return task
    possible = [each for each in tasks.ROWS if tasks.fits(each, network.inputs, output)]
    if len(possible) != 1:
        raise Refused(f"the task is not clear: {sizes}", f"name the task with --task: {', '.join(tasks.ROWS)}")
    return possible[0]


def type_name(dtype):
    return str(dtype).removeprefix("torch.")


def sizes_of(value, names):
    """Sizes of a value of the graph. A symbolic one has its name, or is a formula of names."""
    found = []
    for size in value.shape:
        text = str(size) if isinstance(size, torch.SymInt) else int(size)
        if isinstance(text, str):
            for symbol, name in names.items():
                text = text.replace(symbol, name)
        found.append(text)
    return found


SAME_VALUES = ("cat", "reshape", "view", "flatten", "clone", "contiguous", "slice", "transpose", "permute", "t", "to")


def values_below(node):
    """The number of rows of the smallest embedding that reads the tokens of this node. None if there is none."""
    rows = []
    for user in node.users:
        name = getattr(user.target, "_opname", "")
        if name in ("embedding", "embedding_bag") and user.args[1] is node:
            rows.append(int(user.args[0].meta["val"].shape[0]))
        elif name in SAME_VALUES:
            rows.append(values_below(user))
    return min((row for row in rows if row is not None), default=None)


def metadata(network, traced, output, tied, batches):
    program, module = traced.program, network.module
    placeholders = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    inputs = [placeholders[name] for name in program.graph_signature.user_inputs]
    names, symbols = {}, {}
    for symbol in traced.symbols:
        for i in symbol.inputs:
            names[str(inputs[i].meta["val"].shape[symbol.dimension])] = symbol.name
        symbols[symbol.name] = {"least": 1, "most": symbol.most}
    roles = ("source", "target") if tasks.ROWS[network.task]["target"] == "translation" else ("input",) * len(inputs)
    if network.reductions:
        roles = (*roles[:-1], "targets")
    described = []
    for node, role, x in zip(inputs, roles, network.inputs):
        described.append({"name": node.name, "role": role, "dtype": type_name(x.dtype),
                          "sizes": sizes_of(node.meta["val"], names)})
        rows = values_below(node) if x.dtype == torch.int64 and role != "targets" else None
        if rows is not None:
            described[-1]["values_below"] = rows
    parts = [name for name in network.reductions if name != "loss"]
    values = [("loss", "loss")] if network.reductions else []
    values += [("weights", "weights of the loss")] if network.reductions.get("loss") == "weighted" else []
    values += [(name, "part of the loss") for name in parts]
    result = next(iter(program.graph.find_nodes(op="output"))).args[0][0]
    return {
        "format": FORMAT,
        "task": network.task,
        "torch": str(torch.__version__),
        "dtype": type_name(next(module.parameters()).dtype),
        "sizes": symbols,
        "inputs": described,
        "outputs": [{"name": result.name, "role": tasks.ROWS[network.task]["role"], "dtype": type_name(output.dtype),
                     "sizes": ["batch", *sizes_of(result.meta["val"], names)[1:]]}]
        + [{"name": name, "role": role, "dtype": type_name(output.dtype), "sizes": ["batch"]} for name, role in values],
        **({"loss": {"reduction": network.reductions["loss"], "parts": parts}} if network.reductions else {}),
        **({"optimizer": groups.keys(network.optimizer), "groups": groups.factors(module, network.optimizer)} if network.optimizer else {}),
        "parameters": {name: p.numel() for name, p in module.named_parameters()},
        "tied": tied,
        "initial": initial_values.rules(module),
        "random": [node.name for node in random_nodes(traced)],
        "by_sample": traced.rules,
        "by_sample_in_evaluation": traced.rules_in_evaluation,
        "reference": {
            "file": REFERENCE,
            "loss": reference.LOSS,
            "dropout": 0,
            "seed": reference.SEED,
            "batches": [label for label in batches if label != "other"],
            "processor": torch.backends.cpu.get_cpu_capability(),
            "dtype": "float64",
            "relative_tolerance": reference.TOLERANCE[torch.float64],
        },
    }  # fmt: skip


def stored(network, batches, tied):
    """The tensors of the reference: "batch/input/0", "batch/output", "batch/gradient/NAME", …, "one/…".

    The batch of one has no gradients: they would be as large as the network again."""
    found = {}
    for label, (inputs, _) in batches.items():
        if label != "other":
            for name, x in reference.of_pytorch_in_double(network, inputs, tied).items():
                if label != "one" or not name.startswith("gradient/"):
                    found[f"{label}/{name}"] = x
    return found
