"""How does a merge grow from 2 to 8 zones?  Limit: 50 times the time of 2 zones, with 6 providers.

The kubelet walks the product of all lists: 3^6 combinations at 2 zones, 255^6 at 8, nine orders of magnitude more at
about a million a second. Both ends are measured here in the same run: once where a mask suits everybody, once where
none does and the best of all reachable intersections has to be found."""

from collections.abc import Iterator

from benchmarks import table, timing
from numalign.kubelet.topologymanager import mask as masks
from numalign.kubelet.topologymanager.hints import HintList
from numalign.kubelet.topologymanager.merge import HintMap, Rules
from numalign.kubelet.topologymanager.policies import merge

PROVIDERS = 6
LIMIT = 50.0
REPEATS = 50


def rows() -> Iterator[table.Row]:
    for name, agreeing in (("agreed", True), ("not agreed", False)):
        small = seconds(2, agreeing)
        for zones in (4, 8):
            yield table.Row(
                name=f"merge: {PROVIDERS} providers over {zones} zones, {name}",
                ours=seconds(zones, agreeing) * 1e6,
                peer=small * LIMIT * 1e6,
                unit="us",
            )


def seconds(zones: int, agreeing: bool) -> float:
    rules = Rules("best-effort", tuple(range(zones)))
    provided = [provider(zones, size=1 + (not agreeing and number % 2)) for number in range(PROVIDERS)]

    def merge_often() -> None:
        for _ in range(REPEATS):
            _ = merge(provided, rules).best

    return timing.best_of(merge_often) / REPEATS


def provider(zones: int, size: int) -> HintMap:
    """Every mask suits, those of one size are preferred; sizes that differ leave nothing to agree on."""
    every = tuple(mask for mask, _ in masks.enumerated(tuple(range(zones))))
    return {"resource": HintList(every, frozenset(mask for mask in every if mask.bit_count() == size))}
