"""How long a call takes, for the questions beside this file.

The best of a few runs is reported: whatever else the machine does can only make a run slower, never faster."""

import gc
import time
from collections.abc import Callable


def timed(call: Callable[[], object]) -> float:
    """Seconds for one call, with the garbage of earlier ones collected first and none collected during it."""
    gc.collect()
    gc.disable()
    try:
        started = time.perf_counter()
        call()
        return time.perf_counter() - started
    finally:
        gc.enable()


def best_of(call: Callable[[], object], *, runs: int = 5) -> float:
    """Seconds for the quickest of `runs` calls."""
    return min(timed(call) for _ in range(runs))
