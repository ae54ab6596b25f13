"""`trainyard export FILE.py:FUNCTION`: a network of PyTorch as a .pt2 file that trainyard trains without Python."""
import argparse
import logging
import pathlib
import sys
import traceback
import warnings

from . import tasks
from .problems import Refused

OLDEST, NEWEST = (2, 11), (2, 15)


def options_of(arguments):
    parser = argparse.ArgumentParser(prog="trainyard export")
    parser.add_argument("function")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--batch", type=int, default=0)
    parser.add_argument("--task", default="")
    parser.add_argument("--seeds", type=int, default=0)
    parser.add_argument("--double", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    return parser.parse_args(arguments)


def check_torch():
    """Import torch, and return warnings. Refuses a Python without a PyTorch whose files trainyard reads."""
    try:
        import torch
        import torch.export
    except ImportError as error:
        missing = getattr(error, "name", "") == "torch"
        raise Refused(f"{sys.executable} " + ("has no PyTorch" if missing else f"cannot load PyTorch: {error}"),
                      "name a Python that has torch 2.11 to 2.15 with --python, or install it there") from error
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if version < OLDEST:
        raise Refused(f"{sys.executable} has PyTorch {torch.__version__}",
                      "name a Python that has torch 2.11 to 2.15 with --python")
    torch.set_num_threads(1)
    newer = version > NEWEST
    return [f"PyTorch {torch.__version__} is newer than {NEWEST[0]}.{NEWEST[1]}: trainyard may refuse the file"] if newer else []


def size_of(bytes_):
    for unit in ("B", "kB", "MB"):
        if bytes_ < 1000:
            return f"{bytes_:.0f} {unit}" if unit == "B" or bytes_ >= 10 else f"{bytes_:.1f} {unit}"
        bytes_ /= 1000
    return f"{bytes_:.1f} GB"


def summary(options, about, nodes, checked, weights):
    def line(tensor):
        return f"{tensor['name']}, {tensor['dtype']} [{', '.join(map(str, tensor['sizes']))}]"

    values = sum(about["parameters"].values())
    unknown = [name for name, rule in about["initial"].items() if rule is None]
    lines = [f"{options.out}: {nodes} nodes, {len(about['parameters'])} parameters with {values:,} values, "
             f"{size_of(options.out.stat().st_size)}"]
    lines += [f"  {tensor['role']}: {line(tensor)}" for tensor in about["inputs"] + about["outputs"]]
    lines.append(f"  checked against PyTorch with batches of {checked}: output, gradients, buffers and evaluation")
    if weights:
        lines.append(weights)
    elif unknown:
        lines.append(f"  no initial values by seed: {', '.join(unknown[:4])}"
                     + (f" and {len(unknown) - 4} others" if len(unknown) > 4 else "")
                     + ". They begin with the values of the file")
    return "\n".join(lines)


def export(options, operators):
    found = check_torch()
    from . import describe, graph_checks, groups, model_file, own_loss, reference, seeds, splitting, tracing, user_function  # they import torch
    model_file.check_destination(options.out)
    network = user_function.load(options.function, options.batch, options.double)
    network.warnings[:0] = found
    network.verbose = options.verbose
    if network.optimizer:
        groups.check(network)
    output = reference.output_of(network)
    network.task = describe.task_of(network, output, options.task)
    if network.loss:
        own_loss.attach(network, output)
    if network.optimizer:
        groups.freeze_others(network.module, network.optimizer)
    traced = tracing.trace(network)
    for program in (traced.program, traced.evaluation):
        graph_checks.check_operators(program, operators)
        graph_checks.strip_sources(program)
    traced.rules, traced.splits = splitting.rules_of(traced.program, network, traced.symbols)
    traced.rules_in_evaluation, _ = splitting.rules_of(traced.evaluation, network, traced.symbols)
    network.warnings += graph_checks.warnings_of(traced)
    tied = reference.tied_names(network.module)
    batches = reference.batches_of(network, traced.symbols, tied)
    about = describe.metadata(network, traced, output, tied, batches)
    with model_file.Draft(options.out) as draft:
        draft.write(traced, about, describe.stored(network, batches, tied))
        model_file.check_paths(draft.file, pathlib.Path(options.function.rpartition(":")[0]))
        reference.check_graphs(network, draft, tied, batches)
        if options.seeds:
            network.warnings += seeds.write(network, traced.program, draft, options.seeds)
        draft.replace()
    checked = ", ".join(str(inputs[0].size(0)) for inputs, _ in batches.values())
    weights = seeds.summary(options.out, options.seeds) if options.seeds else ""
    print(summary(options, about, graph_checks.count_nodes(traced.program), checked, weights))
    for i in traced.fixed:
        length = network.inputs[i].size(1)
        way = f"set window_length = {length}" if tasks.ROWS[network.task]["target"] == "next token" else "all texts are padded or cut to it"
        if network.reductions and i + 1 == len(network.inputs):
            continue  # the targets
        network.warnings.append(f"input {i + 1} has a fixed length of {length}: {way}")
    for text in network.warnings:
        print(f"trainyard: warning: {text}", file=sys.stderr)


def main(arguments, operators, task_rows):
    """Run the command and return its exit code: 0, 1 if the machine fails, 2 if the user must change something, 130 after Ctrl-C.

    `operators`: names of those that trainyard executes, one per line. `task_rows`: see tasks.py."""
    tasks.set_rows(task_rows)
    options = options_of(arguments)
    if not options.verbose:
        warnings.filterwarnings("ignore")
        logging.disable(logging.WARNING)
    try:
        names = {line for line in operators.splitlines() if line and not line.startswith("#")}
        export(options, names)
    except Refused as error:
        if options.verbose:
            traceback.print_exc()
        print(f"trainyard: {error}", file=sys.stderr)
        return 2
    except (OSError, MemoryError) as error:
        if options.verbose:
            traceback.print_exc()
        print(f"trainyard: cannot write {options.out}: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if options.verbose:
            traceback.print_exc()
        from .problems import first_line
        print(f"trainyard: the export failed: {first_line(error)}; --verbose prints the traceback", file=sys.stderr)
        return 1
    return 0
