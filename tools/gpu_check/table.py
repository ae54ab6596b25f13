"""Results of tools/check-gpu as text and as JSON."""
import math


def without_nan(value):
    """Replace NaN by null, because JSON has no NaN. The interval of a single round is NaN."""
    if isinstance(value, dict):
        return {name: without_nan(of) for name, of in value.items()}
    if isinstance(value, list):
        return [without_nan(of) for of in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def number(value, form):
    return "–" if value is None else format(value, form)


def rows_of_runs(found):
    if "left_out" in found:
        yield f"left out: {found['left_out']}"
        return
    for run in found["runs"]:
        memory = run["peak_device_bytes"]
        yield (f"{run['model']:18s}{run['strategy']:8s}{run['status']:10s}{number(run['epoch_train_seconds'], '9.4f')} s/epoch  "
               f"loss {number(run['train_loss'], '.4f')}  {number(run['epoch_energy_joules'], '.1f')} J/epoch  "
               f"{number(memory / 2**30 if memory else None, '.2f')} GiB  {run['transport'] or '–'}; {run['steps'] or 'on cores'}"
               f"{'' if run['times_count'] else '; times flagged'}")
    for row in found["parity"]:
        yield (f"{row['model']:18s}{row['strategy']:8s}{'parity' if row['holds'] else 'BROKEN':10s}loss {number(row['loss'], '.1e')}, "
               f"gradients {number(row['gradient'], '.1e')} from one process in {row['steps']} steps")


def rows_of(name, part):
    """Lines of the table with the results of a part."""
    found = part.get("found")
    if not found:
        return
    if name == "tests":
        yield f"{found['passed']} passed, {found['failed']} failed, {found['skipped']} skipped"
    if name in ("matrix", "nccl"):
        yield from rows_of_runs(found)
    if name == "benchmark":
        for model in found:
            for style, against in model.get("against", {}).items():
                yield (f"{model['model']:18s}PyTorch {style:8s} / trainyard {against['ratio']:6.2f} in {against['rounds']} round"
                       f"{'' if against['rounds'] == 1 else 's'}{'' if against['counts'] else '  NOT THE SAME WORK'}")
