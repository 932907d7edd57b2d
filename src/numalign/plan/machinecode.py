"""The functions of `packing` as machine code. Importing this module needs numba.

`onezone` uses it where numba is installed."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, Final

import numba
from numba.extending import register_jitable

from numalign.placement.kernels.compiled import fingerprint
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
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:
        return numba.njit(**options)(function)


for _function in [each for each in vars(packing).values() if isinstance(each, FunctionType)]:
    if _function.__module__ == packing.__name__:
        register_jitable(_function)
replay: Final[Any] = _entry(fingerprint((packing,)))
