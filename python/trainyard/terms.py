"""The terms of a fair comparison as they were observed (docs/record-protocol.md). What was not observed is left out."""
from __future__ import annotations

import json
from typing import Any

import torch

from . import patches
from .steps import Steps

REQUIRED = ("data_fingerprint", "epochs", "global_batch", "optimizer", "learning_rate", "learning_rate_schedule", "precision",
            "batch_norm", "threads", "device", "initial_weights", "batches")
IGNORED = {"params", "lr", "initial_lr", "foreach", "capturable", "differentiable", "fused", "maximize", "decoupled_weight_decay"}


def precision_of(steps: Steps) -> str | None:
    """"float32", "bfloat16" with autocast, or with parameters of a smaller type "bfloat16 parameters"."""
    floating = {dtype for dtype in steps.dtypes if dtype.is_floating_point}
    if not steps.dtypes_known or "precision" in steps.missing:
        return None
    parameters = {parameter.dtype for parameter in steps.inner.parameters() if parameter.is_floating_point()}
    smaller = {dtype for dtype in floating | parameters if dtype.itemsize < 4}
    shown = parameters if smaller & parameters else smaller or floating | parameters
    names = "+".join(sorted(str(dtype).removeprefix("torch.") for dtype in shown))
    if smaller:
        return names + " parameters" * bool(smaller & parameters)
    on_gpu = any(parameter.is_cuda for parameter in steps.inner.parameters())
    return "tf32" if on_gpu and torch.get_float32_matmul_precision() != "highest" else names


def one_or_all(values: list[Any]) -> Any:
    return values[0] if all(value == values[0] for value in values) else json.dumps(values, default=str)


def optimizer_terms(optimizers: list[torch.optim.Optimizer]) -> dict[str, Any]:
    """Terms of all parameter groups. A value that differs between groups is a list as text."""
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    terms: dict[str, Any] = {}
    if all("betas" in group for group in groups):
        terms |= {"beta1": one_or_all([float(group["betas"][0]) for group in groups]),
                  "beta2": one_or_all([float(group["betas"][1]) for group in groups])}
    for term, key in (("epsilon", "eps"), ("weight_decay", "weight_decay")):
        if all(key in group for group in groups):
            terms[term] = one_or_all([float(group[key]) for group in groups])
    texts = []
    for optimizer in optimizers:
        text = type(optimizer).__name__.lower()
        for key in sorted({key for group in optimizer.param_groups for key in group} - IGNORED - {"betas", "eps", "weight_decay"}):
            values = [group.get(key) for group in optimizer.param_groups]
            value = one_or_all(values) if all(isinstance(each, (bool, int, float, str)) for each in values) else None
            if value:
                text += f" {key}" if value is True else f" {key} {value}"
        texts.append(text)
    return terms | {"optimizer": " + ".join(texts)}


def wrapper_of(steps: Steps) -> tuple[str, Any]:
    """("ddp", the module) if gradients are averaged, ("fsdp", …) if parameters are sharded, else ("", None)."""
    modules = list(steps.model.modules())
    found = next((each for each in modules if type(each).__name__ == "DistributedDataParallel"), None)
    for module in (steps.model, steps.inner):
        found = patches.ddp_of[module]() if found is None and module in patches.ddp_of else found
    if found is not None:
        return "ddp", found
    found = next((each for each in modules if type(each).__name__ == "FullyShardedDataParallel"), None)
    sharded = found is not None or any(hasattr(parameter, "full_tensor") for parameter in steps.inner.parameters())
    return ("fsdp", found) if sharded else ("", None)


def wrapper_arguments(steps: Steps) -> dict[str, Any]:
    kind, module = wrapper_of(steps)
    if kind == "ddp":
        return {"ddp": {"find_unused_parameters": module.find_unused_parameters, "static_graph": module.static_graph,
                        "broadcast_buffers": module.broadcast_buffers, "bucket_mb": module.bucket_bytes_cap / 2**20,
                        "gradient_as_bucket_view": module.gradient_as_bucket_view}}
    if kind == "fsdp":
        return {"fsdp": {"version": 1 if module is not None else 2,
                         **({"sharding": module.sharding_strategy.name} if module is not None else {})}}
    return {}


def initial_weights(steps: Steps) -> dict[str, str] | None:
    """Hashes by name. All ranks must call it, because sharded parameters are gathered."""
    kind, module = wrapper_of(steps)
    if kind == "fsdp" and module is not None:
        found = patches.hashes_before_sharding.get(module)
        if found is None:
            steps.missing["initial_weights"] = "FSDP replaced the parameters before they were seen: import trainyard "\
                "after torch.distributed.fsdp, and wrap the whole model once"
        return found
    return patches.weight_hashes(steps.inner)


def batch_norms(steps: Steps) -> list[torch.nn.Module]:
    return [each for each in steps.inner.modules() if isinstance(each, torch.nn.modules.batchnorm._BatchNorm)]


def terms_of_model(steps: Steps, rank: int) -> dict[str, Any]:
    """Terms that hold for the whole run: model, optimizer and device."""
    device = next(steps.inner.parameters()).device
    synchronised = any(type(each).__name__ == "SyncBatchNorm" for each in batch_norms(steps))
    terms = {"threads": torch.get_num_threads(), "precision": precision_of(steps),
             "device": f"{device.type}:{rank if device.type == 'cpu' else device.index}",
             "batch_norm": "sync" if synchronised else "local", **optimizer_terms(steps.optimizers)}
    if len(steps.clip_norms) == 1:
        terms["clip_norm"] = next(iter(steps.clip_norms))
    return {name: value for name, value in terms.items() if value is not None}
