"""Pods that ask for devices by resource claims are left alone, with a reason that says so.

Under the name of the stock scheduler's plugin, because that is where people look. Whoever needs claims names a
scheduler that allocates them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import numpy as np

from numalign.api.pod import Pod
from numalign.placement.rules.rule import FITS, Coded, Codes, Refusal
from numalign.placement.rules.world import World

LEFT_ALONE: Final = Refusal(
    ("pod uses resource claims, which this scheduler does not allocate; name another scheduler for it",),
    unresolvable=True,
)


class DynamicResources:
    name: Final = "DynamicResources"

    def prepare(self, pod: Pod, world: World) -> Refusal | None:
        return LEFT_ALONE if pod.spec.resource_claims else None

    def filter(self, prepared: Coded) -> Codes:
        return np.zeros(len(prepared.codes), np.int32)

    def filter_row(self, prepared: Coded, row: int, removed: Collection[str], added: Sequence[Pod]) -> int:
        return FITS
