"""The functions of `packing` as machine code. Importing this module needs numba.

`onezone` uses it where numba is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numba

from numalign.placement.kernels import machinecode
from numalign.plan import packing


def _entry(fingerprint: int) -> Any:
    """The function that is compiled. Numba keeps machine code by what is enclosed: another fingerprint, other code."""

    def replay(
        policy: int,
        cpu: Any,
        memory: Any,
        gpus: Any,
        model: Any,
        counts: Any,
        shapes: Any,
        pods: Any,
        typical: Any,
        weights: Any,
        ties: Any,
        picks: Any,
        curve: Any,
    ) -> int:
        found = packing.replay(
            policy, cpu, memory, gpus, model, counts, shapes, pods, typical, weights, ties, picks, curve
        )
        return found if fingerprint else 0

    return _compiled(replay)


def _compiled(function: Callable[..., int]) -> Any:
    """Machine code is kept for the next process, except where numba has no folder to write to, such as in a pod whose
    root file system is read-only."""
    try:
        return numba.njit(cache=True, **machinecode.OPTIONS)(function)
    except RuntimeError:
        return numba.njit(**machinecode.OPTIONS)(function)


machinecode.register((packing,))
replay: Final[Any] = _entry(machinecode.fingerprint((packing,)))
