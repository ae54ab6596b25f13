"""How PyTorch initialises the parameters of known modules, as rules for `initial = "seed"`.

A rule is {"uniform": bound}, {"normal": std, "mean": mean} or {"constant": value}. A normal rule may have "zero_row":
the row of an embedding that stands for padding. The actual values must agree with it, else there is no rule."""
import math

import torch
from torch import nn
from torch.nn.init import _calculate_fan_in_and_fan_out as fans

NORMS = (nn.modules.batchnorm._BatchNorm, nn.LayerNorm, nn.GroupNorm, nn.modules.instancenorm._InstanceNorm)
ENOUGH = 50  # values, from which on the largest of them says something about the bound


def rule_of(module, name, p):
    """The rule by the class of the module. None if the class is unknown."""
    if isinstance(module, (nn.Linear, nn.modules.conv._ConvNd)):
        fan_in = fans(module.weight)[0]
        return {"uniform": 1 / math.sqrt(fan_in)} if fan_in else None
    if isinstance(module, nn.Bilinear):
        return {"uniform": 1 / math.sqrt(module.in1_features)}
    if isinstance(module, (nn.Embedding, nn.EmbeddingBag)):
        rule = {"normal": 1.0, "mean": 0.0}
        return rule if module.padding_idx is None else rule | {"zero_row": module.padding_idx}
    if isinstance(module, NORMS) or type(module).__name__ == "RMSNorm":
        return {"constant": 1.0 if name == "weight" else 0.0}
    if isinstance(module, (nn.RNNBase, nn.RNNCellBase)):
        return {"uniform": 1 / math.sqrt(module.hidden_size)}
    if isinstance(module, nn.MultiheadAttention):
        if name in ("bias_k", "bias_v"):
            return {"normal": math.sqrt(2 / sum(fans(p))), "mean": 0.0}
        return {"uniform": math.sqrt(6 / sum(fans(p)))} if p.dim() > 1 else {"constant": 0.0}
    return None


def agrees(rule, p):
    """Whether the actual values can come from this rule."""
    x = p.detach().double()
    if "constant" in rule:
        return bool((x == rule["constant"]).all())
    if "zero_row" in rule:
        row = rule["zero_row"]
        if x[row].count_nonzero():
            return False
        x = torch.cat([x[:row], x[row + 1:]])
    count = x.numel()
    if count > 1 and bool((x == x.flatten()[0]).all()):
        return False
    if "uniform" in rule:
        bound, largest = rule["uniform"], x.abs().max().item()
        if largest > bound * (1 + 1e-6) or (count >= ENOUGH and largest < 0.8 * bound):
            return False
        expected, mean = bound / math.sqrt(3), 0.0
    else:
        expected, mean = rule["normal"], rule["mean"]
    if count < 2:
        return True
    # 10 %, or five standard errors of few values
    allowed = max(0.1, 5 / math.sqrt(2 * count))
    return abs(x.std().item() / expected - 1) <= allowed and abs(x.mean().item() - mean) <= 6 * expected / math.sqrt(count)


def rules(network):
    """{name of a parameter: rule or None}. Tied parameters have their first name."""
    found, values = {}, {}
    first = {id(p): name for name, p in reversed(list(network.named_parameters(remove_duplicate=False)))}
    for path, module in network.named_modules():
        for name, p in module.named_parameters(recurse=False):
            rule = rule_of(module, name, p)
            values[first[id(p)]] = p
            if rule is not None and agrees(rule, p):
                found.setdefault(first[id(p)], rule)
    return {name: found.get(name) or constant_of(p) for name, p in values.items()}


def constant_of(p):
    """The rule of a parameter whose values are all the same. None for others and for single values."""
    x = p.detach().flatten()
    return {"constant": x[0].item()} if x.numel() > 1 and bool((x == x[0]).all()) else None
