"""Reads damaged inputs by the thousand: each is read or refused, within a second, and no memory stays.

The campaigns of this folder call `read_or_refused` with one `Target` after the other."""

from __future__ import annotations

import gc
import json
import resource
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

import msgspec
import pytest
from msgspec import Struct

from numalign.api.errors import BadObject
from tests.strategies import hostile

COUNTS = [200, pytest.param(80_000, id="campaign", marks=pytest.mark.slow)]
"""Inputs of a target."""
LONGEST = 1.0
"""Seconds of the processor for one input."""
MOST_MEMORY = 64 << 20
"""Bytes by which the process may grow while a target reads its inputs."""


class Target(Struct, frozen=True):
    read: Callable[[bytes], object]
    valid: Iterable[bytes]
    refuses: tuple[type[Exception], ...] = (BadObject,)
    share: float = 1.0
    """Of the inputs that other targets get: some take long to read."""
    tolerant: bool = False
    """Nothing is refused: what cannot be read is skipped, or answered with a status."""
    in_parts: bool = False
    """The valid inputs are JSON objects of which parts are exchanged as well: bytes alone mostly break the whole."""


def text(raw: bytes) -> str:
    return raw.decode(errors="surrogateescape")


def read_or_refused(name: str, target: Target, count: int) -> None:
    tried, refusals = 0, [0]
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for each in _damaged(target, int(count * target.share)):
        started = time.process_time()
        try:
            target.read(each)
        except target.refuses as problem:
            refusals.append(len(str(problem)))
        taken = time.process_time() - started
        assert taken < LONGEST, f"{taken:.1f} s for {each[:2000]!r}"
        tried += 1
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    print(f"{name}: {tried:,} inputs, {len(refusals) - 1:,} refused, {grown >> 20} MiB more")
    assert (0 if target.tolerant else 1) <= max(refusals) < 4000, "a refusal does not repeat the input"
    assert grown < MOST_MEMORY


def _damaged(target: Target, count: int) -> Iterator[bytes]:
    valid = list(target.valid)
    each = max(1, count // len(valid) // (2 if target.in_parts else 1))
    for number, raw in enumerate(valid):
        yield from chain(
            hostile.garbled(raw, each, seed=number), _exchanged(raw, each, number) if target.in_parts else ()
        )


def _exchanged(raw: bytes, count: int, seed: int) -> Iterator[bytes]:
    for each in hostile.objects(json.loads(raw), count, seed=seed, absurd=hostile.ABSURD):
        yield msgspec.json.encode(each, enc_hook=str)
