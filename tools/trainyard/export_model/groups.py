"""Parameter groups of an optimizer that the function returns beside its network.

The file has two factors per parameter: of the learning rate, and of the weight decay. The experiment file has the numbers that
they multiply. Parameters in no group are not trained."""
import torch

from .problems import Refused

KINDS = {torch.optim.SGD: "sgd", torch.optim.Adam: "adam", torch.optim.AdamW: "adamw"}
SHARED = ("momentum", "betas", "eps", "nesterov", "amsgrad", "dampening")  # of all groups


def kind_of(optimizer):
    for kind in (torch.optim.AdamW, torch.optim.Adam, torch.optim.SGD):  # AdamW is a kind of Adam
        if isinstance(optimizer, kind):
            return KINDS[kind]
    raise Refused(f"the optimizer is {type(optimizer).__name__}", "use SGD, Adam or AdamW of torch.optim")


def check(network):
    """Refuse an optimizer that trainyard does not have, or of another network."""
    optimizer = network.optimizer
    kind_of(optimizer)
    parts = [part for part in (network.module, network.loss) if isinstance(part, torch.nn.Module)]
    own = {id(p) for part in parts for p in part.parameters()}
    if any(id(p) not in own for group in optimizer.param_groups for p in group["params"]):
        raise Refused("the optimizer has parameters that the network does not have",
                      "make both in the same call of the function")
    first = optimizer.param_groups[0]
    for group in optimizer.param_groups:
        for key in SHARED:
            if group.get(key) != first.get(key):
                raise Refused(f"the groups of the optimizer have different values of {key}", "give all groups the same")
        for key in ("nesterov", "amsgrad", "dampening"):
            if group.get(key):
                raise Refused(f"the optimizer uses {key}", "leave it out")
    if first["lr"] <= 0:
        raise Refused("the learning rate of the first group is 0", "give it one above 0")


def freeze_others(module, optimizer):
    """Parameters in no group are not trained."""
    trained = {id(p) for group in optimizer.param_groups for p in group["params"]}
    for p in module.parameters():
        if id(p) not in trained:
            p.requires_grad_(False)


def factors(module, optimizer):
    """{name: [factor of the learning rate, factor of the weight decay]}, by the first name of a parameter."""
    rate = optimizer.param_groups[0]["lr"]
    decay = max(group["weight_decay"] for group in optimizer.param_groups)
    of = {id(p): [group["lr"] / rate, group["weight_decay"] / decay if decay else 1.0]
          for group in optimizer.param_groups for p in group["params"]}
    return {name: of[id(p)] for name, p in module.named_parameters() if id(p) in of}


def keys(optimizer):
    """The keys of the experiment file that are those of the optimizer."""
    first = optimizer.param_groups[0]
    found = {"optimizer": kind_of(optimizer), "learning_rate": first["lr"],
             "weight_decay": max(group["weight_decay"] for group in optimizer.param_groups)}
    if found["optimizer"] == "sgd":
        return found | {"momentum": first["momentum"]}
    return found | {"beta1": first["betas"][0], "beta2": first["betas"][1], "epsilon": first["eps"]}
