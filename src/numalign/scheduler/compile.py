"""Compiles the engine's kernel in the background; the scheduler never waits for it.

`numalign scheduler run` has this as a task. Compiling takes half a minute, during which Python blocks everything else
for seconds: no lease would be renewed. So a process of its own compiles and leaves the result on disk, and a thread
here loads it. The engine runs the kernel as plain Python until then, and for good where numba is missing, where no
cache directory is writable, or where the cluster is small. In the container image the result is on disk already, and
`numalign.process.kernelcache` makes numba accept a cache that cannot be written to. The log says which it was."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Final, Protocol

from numalign.kube.clock import Clock
from numalign.process.interpreter import PYTHON

LOG: Final = logging.getLogger(__name__)
CODE: Final = "from numalign.placement.kernels import compiled; compiled.warm(); print(compiled.origin())"
COMPILE: Final = (*PYTHON, "-c", CODE)
"""Numba caches compiled code beside the sources, in the user's cache folder, or in NUMBA_CACHE_DIR."""
CACHE: Final = "NUMBA_CACHE_DIR"
LOWER_PRIORITY: Final = 10
MANY_NODES: Final = 100
PERIOD: Final = 1.0
WITH: Final = "the kernel is machine code: %s"
WITHOUT: Final = "the kernel stays plain Python: %s"


class CompiledEngine(Protocol):
    @property
    def kernel(self) -> object | None: ...

    def warm(self) -> bool: ...


async def when_large(engine: CompiledEngine, nodes: Callable[[], int], clock: Clock) -> bool:
    """Compiles once the cluster has many nodes. In a small cluster the gain does not justify the memory."""
    while nodes() < MANY_NODES:
        await clock.sleep(PERIOD)
    return await warmed(engine)


async def warmed(engine: CompiledEngine, compiling: Sequence[str] = COMPILE) -> bool:
    """Whether the engine uses machine code from now on. If not, the reason was logged."""
    if engine.kernel is None:
        return False
    if find_spec("numba") is None:
        LOG.info(WITHOUT, "numba is not installed")
        return False
    problem = _unsafe_cache()
    if not problem:
        succeeded, said = await _run(compiling)
        problem = "" if succeeded else said
    if problem:
        LOG.warning(WITHOUT, problem)
        return False
    try:
        loaded = await asyncio.to_thread(engine.warm)
    except Exception as broken:
        # Pods can be placed without machine code, so no error of the compiler ends the scheduler.
        LOG.warning(WITHOUT, broken)
        return False
    LOG.info(WITH, said)
    return loaded


def _unsafe_cache() -> str:
    """Why the cache may hold another user's code; empty: it does not."""
    folder = os.environ.get(CACHE, "")
    try:
        owner = os.stat(folder).st_uid if folder else 0
    except OSError:
        return ""
    return "" if owner in (0, os.geteuid()) else f"{CACHE} belongs to another user, and code is loaded from there"


async def _run(command: Sequence[str]) -> tuple[bool, str]:
    """Runs the command. Whether it succeeded, and the last line of its output or of its error output."""
    pipe, nowhere = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command, stdin=nowhere, stdout=pipe, stderr=pipe)
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process.pid, LOWER_PRIORITY)
    try:
        output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    succeeded = process.returncode == 0
    said = (output if succeeded else errors).decode(errors="replace").strip().splitlines()
    return succeeded, (said or [f"exit code {process.returncode}"])[-1]
