"""A lab, from its spec to nodes that are Ready, and back to nothing.

`numalign lab up` and tests enter `up(spec)`. The process that does is the parent of every program: when it ends,
however it ends, they end. While the block runs, whatever ends without being asked is started again, as on a node with
an init system. Leaving it removes the lab's folder; after a failed start the folder stays for its logs."""

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
"""Seconds between two looks at whether everything still runs."""


@contextlib.asynccontextmanager
async def up(spec: LabSpec, say: Say = LOG.info) -> AsyncIterator[Lab]:
    """The lab, once its nodes are Ready; LabError or BadObject say why it cannot be."""
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
    """Of what an earlier lab of this name left behind; files stay, one is the lock and one the log of this start."""
    for left in place.iterdir():
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)


async def _tend(lab: Lab) -> None:
    while True:
        await asyncio.sleep(TENDED)
        lab.tend()
