"""Machine code for the engine, made ready beside the scheduler's work and never in its way.

`numalign scheduler run` has this as a task. To compile takes a minute and more, during which Python is kept from
everything else for seconds: no lease would be renewed. So a process of its own does it and leaves the results on disk,
and here they are only loaded, in a thread. NumPy serves until then, and for good where numba is missing, where there is
no place to write to, or where there are so few nodes that it is as quick."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Final, Protocol

from numalign.kube.clock import Clock

LOG: Final = logging.getLogger(__name__)
COMPILE: Final = (sys.executable, "-c", "from numalign.placement.engine import Engine; Engine().warm()")
"""Numba keeps what it compiles beside the sources, in the user's cache folder, or in NUMBA_CACHE_DIR."""
LOWER_PRIORITY: Final = 10
MANY_NODES: Final = 500
PERIOD: Final = 1.0
WITHOUT: Final = "without machine code, NumPy serves: %s"


class CompiledEngine(Protocol):
    @property
    def is_exact(self) -> bool: ...

    def warm(self) -> bool: ...


async def when_large(engine: CompiledEngine, nodes: Callable[[], int], clock: Clock) -> bool:
    """As soon as the cluster has many nodes; with few, there is nothing to gain for the memory that it takes."""
    while nodes() < MANY_NODES:
        await clock.sleep(PERIOD)
    return await warmed(engine)


async def warmed(engine: CompiledEngine, compiling: Sequence[str] = COMPILE) -> bool:
    """Whether machine code serves from now on; if not, it was said why."""
    if not engine.is_exact:
        return False
    if find_spec("numba") is None:
        LOG.info(WITHOUT, "numba is not installed")
        return False
    problem = await _problem(compiling)
    if problem:
        LOG.warning(WITHOUT, problem)
        return False
    try:
        return await asyncio.to_thread(engine.warm)
    except Exception as broken:
        # Whatever is the matter with the compiler, pods can be placed without it.
        LOG.warning(WITHOUT, broken)
        return False


async def _problem(command: Sequence[str]) -> str:
    """Of a command that is carried out, its last words; empty: none."""
    nowhere = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *command, stdin=nowhere, stdout=nowhere, stderr=asyncio.subprocess.PIPE
    )
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process.pid, LOWER_PRIORITY)
    try:
        _, said = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode == 0:
        return ""
    return (said.decode(errors="replace").strip().splitlines() or [f"exit code {process.returncode}"])[-1]
