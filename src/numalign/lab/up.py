"""Starts a lab from its specification and removes it again.

`numalign lab up`, campaigns and tests enter `up(spec)`. The calling process is the parent of every program; they end
with it. Programs that end unexpectedly are restarted, as by an init system. Leaving the block removes the lab's folder;
after a failed start the folder stays for its logs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from numalign.lab import ability, assembling, parts, state
from numalign.lab import spec as specs
from numalign.lab.labs import Lab, Say
from numalign.lab.spec import LabSpec

LOG: Final = logging.getLogger(__name__)
TENDED: Final = 0.5
"""Seconds between checks of the programs."""


@contextlib.asynccontextmanager
async def up(spec: LabSpec, say: Say = LOG.info) -> AsyncIterator[Lab]:
    """The lab, once its nodes are Ready. LabError or BadObject if it cannot start."""
    specs.check(spec)
    ability.require(len(spec.nodes), spec.reporter_count)
    try:
        with state.SHELF.held(spec.name) as place:
            _empty(place)
            async with _running(Lab(spec, place, say)) as lab:
                yield lab
    finally:
        if not state.SHELF.every():
            ability.release()


@contextlib.asynccontextmanager
async def _running(lab: Lab) -> AsyncIterator[Lab]:
    try:
        await assembling.start(lab)
        tending = asyncio.create_task(_tend(lab))
        try:
            yield lab
        finally:
            tending.cancel()
            parts.end_all(lab.every_part())
            shutil.rmtree(lab.place, ignore_errors=True)
    finally:
        parts.end_all(lab.every_part())


def _empty(place: Path) -> None:
    """Remove the folders of an earlier lab of this name. The lock and the log of this start stay."""
    for left in place.iterdir():
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)


async def _tend(lab: Lab) -> None:
    while True:
        await asyncio.sleep(TENDED)
        lab.tend()
