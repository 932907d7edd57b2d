"""Shrinks rows: items of lists and entries of tables, larger cuts first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from numalign.oracle.shrinking import generic
from numalign.oracle.shrinking.generic import Case

OPEN: Final = frozenset(("sys_memory", "memory_capacity", "exclude", "config", "files"))
"""Tables from which any entry can be removed."""
OPTIONAL: Final = frozenset(("exclude", "namespace", "fingerprint_method", "api_pod"))
"""Columns that a row can omit."""
FIXED: Final = frozenset(("id", "reference", "distances"))
"""Lists whose length has a meaning."""
NEEDED: Final = frozenset(("nodes", "files"))
"""What is never empty."""


def smaller(case: Case) -> Iterator[Case]:
    for row in generic.candidates(case["input"], _cuts(case["input"])):
        zones = (row.get("topology") or {}).get("nodes") or ()
        for zone in zones:
            del zone["distances"][len(zones) :]
        yield {**case, "input": row}


def _cuts(row: Case) -> Iterator[tuple[generic.Place, Any]]:
    for place, thing in generic.objects(row):
        for key, child in thing.items():
            if (key in OPTIONAL and not place) or (place and place[-1] in OPEN):
                yield place, key
            if isinstance(child, list) and key not in FIXED:
                whole = (0, len(child)) if key in NEEDED else None
                yield from (((*place, key), slice(*block)) for block in generic.blocks(len(child)) if block != whole)
