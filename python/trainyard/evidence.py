"""What `trainyard explain` needs of all ranks. Rank 0 gathers it at the end of each epoch: docs/python.md."""
from __future__ import annotations

import itertools
from typing import Any

from . import chain, samples, terms
from .chain import forgiving
from .steps import Steps


class Evidence:
    """`found` has the members of `observed` on rank 0. problem: why nothing more was learned."""

    def __init__(self, steps: Steps):
        self.steps, self.problem, self.found = steps, "", {"chain": []}

    @forgiving
    def mine(self, number: int, **equal: str | None) -> dict[str, Any]:
        """What this rank saw in the epoch of this number. equal: hashes that should be the same on all ranks."""
        steps, seen = self.steps, {"equal": equal, "eval_steps": self.steps.eval_steps, "uncleared": self.steps.uncleared}
        if steps.wrapper[0] != "fsdp":
            parameters = [each for each in steps.inner.parameters() if each.requires_grad]
            seen["equal"]["weights"] = chain.hash_of(parameters)
        if steps.chain is not None:
            seen["chain"] = steps.chain.message()
            if number > 1 and steps.steps >= chain.WATCHED:
                steps.chain.end()
                steps.chain = None
        if number == 1:
            seen["ids"], seen["distinct"] = samples.smallest(steps.taken)
            seen["random"] = steps.random
        return seen

    @forgiving
    def learn(self, number: int, of_ranks: list[dict[str, Any] | None], sizes: list[list[int]]) -> None:
        """On rank 0: what all ranks saw, and the samples of their steps."""
        if all(each.get("chain") for each in of_ranks):
            chain.extend(self.found["chain"], [each["chain"] for each in of_ranks], later=number <= 2)
        self.found |= {name: max(each[name] for each in of_ranks) for name in ("eval_steps", "uncleared")}
        for name in of_ranks[0]["equal"] if len(of_ranks) > 1 else ():
            if all(values := [each["equal"].get(name) for each in of_ranks]):
                self.found[f"equal_{name}"] = len(set(values)) == 1 and self.found.get(f"equal_{name}", True)
        if number == 1:
            self.found["epoch_samples"] = total = sum(map(sum, sizes))
            self.found["repeated"] = 1 - sum(each["distinct"] for each in of_ranks) / max(total, 1)
        if number == 1 and len(of_ranks) > 1:
            if all(ids := [each["ids"] for each in of_ranks]):
                self.found["overlap"] = max(samples.overlap(*pair) for pair in itertools.combinations(ids, 2))
            states = {what: [each["random"].get(what, []) for each in of_ranks] for what in ("fetch", "forward")}  # before, after
            self.found["random"] = {what: [name for name, state in pairs[0][0].items() if all(a[name] == state != b[name] for a, b in pairs)]
                                    for what, pairs in states.items() if all(len(pair) == 2 for pair in pairs)}

    def members(self, world: int) -> dict[str, Any]:
        """Those that were observed."""
        steps, norms = self.steps, terms.batch_norms(self.steps)
        shares = world if any(type(each).__name__ == "SyncBatchNorm" for each in norms) else 1
        found = self.found | {name: getattr(steps, name) for name in ("train_mode_passes", "without_gradient", "scheduler_steps",
                                                                      "gradient_bytes")}
        found["batch_norm_samples"] = steps.first_rows * shares if norms else 0
        return {name: value for name, value in found.items() if value or name == "overlap" or name.startswith("equal_")}
