"""Rows with something less: items of lists and entries of tables, the larger things gone first."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

from numalign.oracle.shrinking import cuts
from numalign.oracle.shrinking.anatomy import Case

OPEN: Final = frozenset(("sys_memory", "memory_capacity", "exclude", "config", "files"))
"""Tables any entry of which can go."""
OPTIONAL: Final = frozenset(("exclude", "namespace", "fingerprint_method", "api_pod"))
"""Columns that a row can be without."""
FIXED: Final = frozenset(("id", "reference", "distances"))
"""Lists of a length that means something."""
NEEDED: Final = frozenset(("nodes", "files"))
"""What is never empty."""


def smaller(case: Case) -> Iterator[Case]:
    for place, gone in sorted(_cuts(case["input"]), key=lambda cut: len(cut[0])):
        candidate = deepcopy(case)
        del cuts.at(candidate["input"], place)[gone]
        zones = (candidate["input"].get("topology") or {}).get("nodes") or ()
        for zone in zones:
            del zone["distances"][len(zones) :]
        yield candidate


def _cuts(row: Case) -> Iterator[tuple[cuts.Place, Any]]:
    for place, thing in cuts.objects(row):
        for key, child in thing.items():
            if (key in OPTIONAL and not place) or (place and place[-1] in OPEN):
                yield place, key
            if isinstance(child, list) and key not in FIXED:
                whole = (0, len(child)) if key in NEEDED else None
                yield from (((*place, key), slice(*block)) for block in cuts.blocks(len(child)) if block != whole)
