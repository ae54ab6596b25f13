"""A loss of the user's, in the graph of the network.

The function returns it beside the network. loss(outputs, targets) gives values per sample, or a scalar that is a mean or a sum
over samples. The network then reads the targets as its last input, and gives its first tensor and the values [batch]."""
import copy

import torch
from torch.utils import _pytree

from . import tasks
from .problems import Refused, first_line, place_of

SAMPLES = 6  # of the batch whose scalar is compared with those of its first sample and of the others
TOLERANCE = 1e-9


def first_tensor(outputs):
    """The logits of a dictionary that has some, or the first tensor."""
    if isinstance(outputs, dict) and isinstance(outputs.get("logits"), torch.Tensor):
        return outputs["logits"]
    return next((x for x in _pytree.tree_leaves(outputs) if isinstance(x, torch.Tensor)), outputs)


def one_tensor(outputs):
    """What a network gives, as one tensor: behind the output of each sample the value of its loss, if it has one."""
    if not isinstance(outputs, (tuple, list)) or len(outputs) != 2:
        return outputs[0] if isinstance(outputs, (tuple, list)) and len(outputs) == 1 else outputs
    return torch.cat([outputs[0].flatten(1), outputs[1].unsqueeze(1)], 1)


def values_of_samples(found, output, reduction):
    """[batch]: the sum over a part of a batch is that of its mean times its samples, or its share of the sum."""
    if found.dim() > 0:
        return found.flatten(1).mean(1) if found.dim() > 1 else found
    ones = torch.ones_like(output.flatten(1)[:, 0])
    return found * ones if reduction == "mean" else found * ones / ones.sum()


def with_loss(module, loss, reduction):
    """The same module, which reads targets and gives the values of the loss too."""
    kind = type(module)

    class WithLoss(kind):
        def forward(self, *inputs):
            held = self._modules.pop("own_loss", None)  # nn.Sequential would call it
            outputs = kind.forward(self, *inputs[:-1])
            if held is not None:
                self._modules["own_loss"] = held
            output = first_tensor(outputs)
            return output, values_of_samples(loss(outputs, inputs[-1]), output, reduction)

    WithLoss.__name__ = WithLoss.__qualname__ = kind.__name__
    module.__class__ = WithLoss
    if isinstance(loss, torch.nn.Module):
        module.own_loss = loss
    return module


def targets_of(task, inputs, output):
    """Made-up targets with the types and sizes of the data."""
    target = tasks.ROWS[task]["target"]
    if target == "label":
        return torch.arange(output.size(0)) % max(2, output.size(1))
    return inputs[0].clone() if target == "input" else inputs[0].roll(-1, 1)


def reduction_of(module, loss, inputs, targets):
    """"mean" or "sum". Values per sample are averaged."""
    def of(samples):
        return loss(module(*[x[samples] for x in inputs]), targets[samples])

    samples = torch.arange(SAMPLES)
    whole = of(samples)
    if not isinstance(whole, torch.Tensor) or (whole.dim() and whole.size(0) != SAMPLES):
        raise Refused(f"the loss gives {type(whole).__name__}" + (f" of size {list(whole.shape)}" if isinstance(whole, torch.Tensor) else ""),
                      "return one value per sample, or a scalar that is their mean or their sum")
    if whole.dim():
        return "mean"
    first, others = of(samples[:1]), of(samples[1:])
    for name, expected in (("mean", (first + (SAMPLES - 1) * others) / SAMPLES), ("sum", first + others)):
        if (whole - expected).abs() <= TOLERANCE * whole.abs().clamp(min=1e-30):
            return name
    raise Refused("the loss is neither a mean nor a sum over the samples, so a batch cannot be split",
                  'return one value per sample, as PyTorch does with reduction="none"')


def attach(network, output):
    """Give the network its loss: from now on each of its modules reads targets."""
    from . import reference
    if tasks.ROWS[network.task]["target"] == "translation":
        raise Refused(f"a {network.task} cannot have its own loss", "leave it out")
    targets = targets_of(network.task, network.inputs, output)
    picked = [torch.arange(SAMPLES) % x.size(0) for x in (*network.inputs, targets)]
    inputs = [reference.in_double(x[kept]) for x, kept in zip((*network.inputs, targets), picked)]
    module = network.fresh()
    loss = copy.deepcopy(network.loss).double() if isinstance(network.loss, torch.nn.Module) else network.loss
    try:
        with torch.no_grad(), reference.WithoutDropout(), reference.Halves(), reference.InDouble():
            network.reduction = reduction_of(reference.without_dropout(module).double().eval(), loss, inputs[:-1], inputs[-1])
    except Refused:
        raise
    except Exception as error:
        raise Refused(f"the loss of {network.name} fails: {first_line(error)}", "correct it; --verbose prints the traceback",
                      place_of(error)) from error
    network.inputs = (*network.inputs, targets)
    network.module = with_loss(network.module, network.loss, network.reduction)
