"""A loss of the user's, in the graph of the network.

The function returns it beside the network. loss(outputs, targets) gives one of these:
- values per sample
- (values, weights) per sample: the loss is the sum of the values over that of the weights
- a scalar that is a mean or a sum over samples
- {"loss": one of these, NAME: values per sample, or a scalar}: the other names are recorded.
The network then reads the targets as its last input. It gives its first tensor, and [batch]: the values of the loss, its
weights if it has some, and what is recorded."""
import copy

import torch
from torch.utils import _pytree

from . import tasks
from .problems import Refused, first_line, place_of

SAMPLES = 6  # of the batch whose scalar is compared with those of its first sample and of the others
TOLERANCE = 1e-9
MOST_PARTS = 3  # as in models/tasks.h


def first_tensor(outputs):
    """The logits of a dictionary that has some, or the first tensor."""
    if isinstance(outputs, dict) and isinstance(outputs.get("logits"), torch.Tensor):
        return outputs["logits"]
    return next((x for x in _pytree.tree_leaves(outputs) if isinstance(x, torch.Tensor)), outputs)


def one_tensor(outputs):
    """What a network gives, as one tensor: behind the output of each sample the values of its loss, if it has one."""
    if not isinstance(outputs, (tuple, list)) or len(outputs) < 2 or any(x.dim() != 1 for x in outputs[1:]):
        return outputs[0] if isinstance(outputs, (tuple, list)) and len(outputs) == 1 else outputs
    return torch.cat([outputs[0].flatten(1), *[x.unsqueeze(1) for x in outputs[1:]]], 1)


def named(found):
    """{"loss": …, NAME: …} of what a loss gives."""
    return found if isinstance(found, dict) else {"loss": found}


def values_of_samples(found, output, reduction):
    """Tensors [batch]. The sum over a part of a batch is that of its mean times its samples, or its share of the sum."""
    if reduction == "weighted":
        return [(x.flatten(1).sum(1) if x.dim() > 1 else x).to(output.dtype) for x in found]
    if found.dim() > 0:
        return [found.flatten(1).mean(1) if found.dim() > 1 else found]
    ones = torch.ones_like(output.flatten(1)[:, 0])
    return [found * ones if reduction == "mean" else found * ones / ones.sum()]


def with_loss(module, loss, reductions):
    """The same module, which reads targets and gives the values of the loss too. `reductions`: by name, the loss first."""
    kind = type(module)

    class WithLoss(kind):
        def forward(self, *inputs):
            held = self._modules.pop("own_loss", None)  # nn.Sequential would call it
            outputs = kind.forward(self, *inputs[:-1])
            if held is not None:
                self._modules["own_loss"] = held
            output, found = first_tensor(outputs), named(loss(outputs, inputs[-1]))
            return (output, *[x for name, how in reductions.items() for x in values_of_samples(found[name], output, how)])

    WithLoss.__name__ = WithLoss.__qualname__ = kind.__name__
    module.__class__ = WithLoss
    if isinstance(loss, torch.nn.Module):
        module.own_loss = loss
    return module


class PerSample(torch.nn.CrossEntropyLoss):
    """The mean of nn.CrossEntropyLoss with class weights or an ignored class, as values and weights."""

    def forward(self, outputs, targets):
        counted = (targets != self.ignore_index).to(outputs.dtype)
        weights = counted if self.weight is None else counted * self.weight[targets * (targets != self.ignore_index)]
        return torch.nn.functional.cross_entropy(outputs, targets, self.weight, ignore_index=self.ignore_index, reduction="none",
                                                 label_smoothing=self.label_smoothing), weights


def per_sample(loss):
    """The same loss in a form whose batch can be split."""
    if type(loss) is torch.nn.CrossEntropyLoss and loss.reduction == "mean" and (loss.weight is not None or loss.ignore_index >= 0):
        loss.__class__ = PerSample
    return loss


def targets_of(task, inputs, output):
    """Made-up targets with the types and sizes of the data."""
    target = tasks.ROWS[task]["target"]
    if target == "label":
        return torch.arange(output.size(0)) % max(2, output.size(1))
    return inputs[0].clone() if target == "input" else inputs[0].roll(-1, 1)


def described(found):
    return type(found).__name__ + (f" of size {list(found.shape)}" if isinstance(found, torch.Tensor) else "")


def is_of_samples(found):
    return isinstance(found, torch.Tensor) and found.dim() > 0 and found.size(0) == SAMPLES


def reduction_of(name, whole, first, others):
    """"mean", "sum" or "weighted", from what the loss gives for samples, for the first one and for the others."""
    if name == "loss" and isinstance(whole, tuple) and len(whole) == 2 and all(map(is_of_samples, whole)):
        return "weighted"
    if is_of_samples(whole):
        return "mean"
    what = "the loss" if name == "loss" else f'the part "{name}" of the loss'
    if not isinstance(whole, torch.Tensor) or whole.dim():
        weights = ", or two tensors, values and weights per sample" if name == "loss" else ""
        raise Refused(f"{what} gives {described(whole)}",
                      f"return one value per sample{weights}, or a scalar that is their mean or their sum")
    for how, expected in (("mean", (first + (SAMPLES - 1) * others) / SAMPLES), ("sum", first + others)):
        if (whole - expected).abs() <= TOLERANCE * whole.abs().clamp(min=1e-30):
            return how
    raise Refused(f"{what} is neither a mean nor a sum over the samples, so a batch cannot be split",
                  'return one value per sample, as PyTorch does with reduction="none", or the values and their weights')


def reductions_of(module, loss, inputs, targets):
    """How each named value of the loss is made from samples, the loss first."""
    def of(samples):
        return named(loss(module(*[x[samples] for x in inputs]), targets[samples]))

    samples = torch.arange(SAMPLES)
    whole, first, others = of(samples), of(samples[:1]), of(samples[1:])
    names = [name for name in whole if name != "loss"]
    if "loss" not in whole or len(names) > MOST_PARTS or not all(isinstance(name, str) and name.isidentifier() for name in names):
        raise Refused(f"the loss gives {', '.join(map(repr, whole))}",
                      f'name the value that is minimised "loss", and at most {MOST_PARTS} others with letters, digits and _')
    return {name: reduction_of(name, whole[name], first[name], others[name]) for name in ("loss", *names)}


def attach(network, output):
    """Give the network its loss: from now on each of its modules reads targets."""
    from . import reference
    if tasks.ROWS[network.task]["target"] == "translation":
        raise Refused(f"a {network.task} cannot have its own loss", "leave it out")
    targets = targets_of(network.task, network.inputs, output)
    picked = [torch.arange(SAMPLES) % x.size(0) for x in (*network.inputs, targets)]
    inputs = [reference.in_double(x[kept]) for x, kept in zip((*network.inputs, targets), picked)]
    module = network.fresh()
    network.loss = per_sample(network.loss)
    loss = copy.deepcopy(network.loss).double() if isinstance(network.loss, torch.nn.Module) else network.loss
    try:
        with torch.no_grad(), reference.WithoutDropout(), reference.Halves(), reference.InDouble():
            network.reductions = reductions_of(reference.without_dropout(module).double().eval(), loss, inputs[:-1], inputs[-1])
    except Refused:
        raise
    except Exception as error:
        raise Refused(f"the loss of {network.name} fails: {first_line(error)}", "correct it; --verbose prints the traceback",
                      place_of(error)) from error
    network.inputs = (*network.inputs, targets)
    network.module = with_loss(network.module, network.loss, network.reductions)
