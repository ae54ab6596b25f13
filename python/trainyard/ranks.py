"""The ranks of a run, and small messages between them through the store of their rendezvous.

No collective operation is called, so nothing can get out of step with the operations of the script."""
from __future__ import annotations

import functools
import os
from datetime import timedelta

import torch.distributed as dist

PATIENCE = timedelta(seconds=60)


def grouped() -> bool:
    return dist.is_available() and dist.is_initialized()


def own() -> int:
    """The number of this rank."""
    return dist.get_rank() if grouped() else int(os.environ.get("RANK", 0))


def number() -> int:
    """The number of ranks."""
    return dist.get_world_size() if grouped() else int(os.environ.get("WORLD_SIZE", 1))


@functools.cache
def _store() -> dist.Store:
    if grouped():
        store = dist.distributed_c10d._get_default_store()
    elif os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
    else:
        raise RuntimeError("trainyard.start() finds no rendezvous of the ranks: call init_process_group before it")
    return dist.PrefixStore(f"trainyard/{os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)}", store)


def of_rank_0(name: str, mine: str) -> str:
    """The text that rank 0 has under this name."""
    if number() == 1:
        return mine
    if own() == 0:
        _store().set(name, mine)
    _store().wait([name], PATIENCE)
    return _store().get(name).decode()


def gathered(name: str, mine: str) -> list[str] | None:
    """The texts of all ranks in their order on rank 0, None on the others. RuntimeError if one does not arrive."""
    if number() == 1:
        return [mine]
    keys = [f"{name}/{rank}" for rank in range(number())]
    _store().set(keys[own()], mine)
    if own() != 0:
        return None
    _store().wait(keys, PATIENCE)
    texts = [_store().get(key).decode() for key in keys]
    for key in keys:
        _store().delete_key(key)
    return texts
