"""The tasks of trainyard, one row each: {"name", "target", "inputs", "rows", "role", "output", "reads", "gives"}.

`trainyard export` gives the rows of models/tasks.h, which describes them. "inputs" is 0 if any number fits."""

ROWS = {}


def set_rows(rows):
    ROWS.update({row["name"]: row for row in rows})


def has_size(size, name, inputs):
    """Whether a size of the output is the one that a row names."""
    if name in ("length", "steps"):
        return size == inputs[0 if name == "length" else -1].size(1)
    if name == "batch":
        return size == inputs[0].size(0)
    return size > 1 if name in ("classes", "vocabulary") else size == int(name)


def fits(name, inputs, output):
    row = ROWS[name]
    if row["inputs"] not in (0, len(inputs)):
        return False
    if row["rows"] and (inputs[0].dim() != 2 or not inputs[0].is_floating_point()):
        return False
    if not row["output"]:
        return output.shape == inputs[0].shape
    if row["target"] != "label" and (str(inputs[-1].dtype) != "torch.int64" or inputs[-1].dim() != 2):
        return False
    return output.dim() == len(row["output"]) and all(has_size(size, of, inputs) for size, of in zip(output.shape, row["output"]))
