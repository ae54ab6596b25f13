"""First weights per seed: the user's function is called under each seed, and its values are written beside the graph."""
import hashlib

import torch

from . import initial_values, reference
from .model_file import bytes_of, safetensors
from .own_loss import one_tensor
from .problems import Refused
from .user_function import set_values, values_of


def file_name(out, seed):
    return f"{out.stem}.seed-{seed}.safetensors"


def weight_names(program, module):
    """Parameters and buffers whose values are in the file. Tied ones have the first of their names, as when it is read."""
    own, first = values_of(module), {}
    for spec in program.graph_signature.input_specs:
        if spec.target in program.state_dict and spec.target in own:
            first.setdefault(id(own[spec.target]), spec.target)
    return list(first.values())


def values_in(module, names):
    values = values_of(module)
    return {name: values[name].detach().clone() for name in names}


def digests_of(values):
    return {name: hashlib.sha256(bytes_of(x)).digest() for name, x in values.items()}


def outputs_of(module, evaluation, inputs):
    """The outputs in evaluation and in training, with the same random numbers for a network and its graphs."""
    found = {"evaluation": evaluation(inputs)}  # before the training step changes buffers
    torch.manual_seed(reference.SEED)
    found["output"] = one_tensor(module(*[x.clone() for x in inputs])).detach()
    return found


class Graphs:
    """The graphs of a written file, with the values of one seed after the other."""

    def __init__(self, draft):
        self.training, self.evaluation = (reference.graph_without_dropout(torch.export.load(str(file)))
                                          for file in (draft.file, draft.evaluation))

    def check(self, network, module, values, seed):
        """Refuse a network whose outputs depend on numbers of the seed that no file has, such as constants."""
        with reference.WithoutDropout():
            module = reference.without_dropout(module)
            expected = outputs_of(module, lambda x: reference.evaluated_eagerly(module, x), network.inputs)
        for graph in (self.training, self.evaluation):
            set_values(graph, values)
        found = outputs_of(self.training, lambda x: reference.evaluated(self.evaluation, x), network.inputs)
        off = reference.difference(expected, found, next(module.parameters()).dtype)
        if off is not None:
            raise Refused(f"with the weights of seed {seed} the graph does not compute what {network.name} computes: "
                          f"the {off[0]} is {off[1]}", "keep numbers that are drawn in parameters and persistent buffers")


def check_same(network, first, names):
    """Refuse a function that makes other values in another call under seed 0."""
    again = digests_of(values_in(network.of_seed(0), names))
    other = [name for name in names if again[name] != first[name]]
    if other:
        raise Refused(f"{network.name} makes other values of {other[0]} if it is called again under the same seed",
                      "draw with the generators that torch.manual_seed, random.seed and numpy.random.seed set")


def check_other(network, first, second):
    """Refuse a function that makes the same values under the seeds 0 and 1."""
    if first == second:
        raise Refused(f"{network.name} makes the same weights under each seed",
                      "remove torch.manual_seed and loaded weights from it, or leave --seeds out")


def warnings_of(network, digests):
    """Trained parameters that begin with the same values under all seeds. Constants, such as biases of 0, are usual."""
    def is_constant(p):
        return p.numel() < 2 or initial_values.constant_of(p) is not None

    same = [name for name, p in network.module.named_parameters() if p.requires_grad and name in digests[0]
            and len({each[name] for each in digests}) == 1 and not is_constant(p)]
    more = f" and {len(same) - 4} others" if len(same) > 4 else ""
    return [f"the same first values under each seed: {', '.join(same[:4])}{more}"] if same else []


def write(network, program, draft, count):
    """Write the weights of the seeds 0 … count − 1 into the folder of the draft, and return warnings.

    A file names the .pt2 file that it belongs to by its SHA-256."""
    names, graphs, digests = weight_names(program, network.module), Graphs(draft), []
    about = {"format": "pt", "network": hashlib.sha256(draft.file.read_bytes()).hexdigest()}
    for seed in range(max(count, 2)):
        module = network.of_seed(seed)
        values = values_in(module, names)
        digests.append(digests_of(values))
        if seed == 1:
            check_same(network, digests[0], names)
            check_other(network, *digests)
        if seed < count:
            graphs.check(network, module, values, seed)
            draft.add(file_name(draft.out, seed), safetensors(values, about))
    return warnings_of(network, digests)


def summary(out, count):
    """The line about the files."""
    first, last = file_name(out, 0), file_name(out, count - 1)
    return f"  weights per seed: {first}" + (f" … {last}" if count > 1 else "")
