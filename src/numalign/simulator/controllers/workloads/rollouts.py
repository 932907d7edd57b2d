"""How far a deployment goes in one step, in plain numbers.

`deployments` reads sizes off the replica sets and writes them back; everything that could take too many pods away, or
add too many, is decided here. `Sizes` are the replica sets by age, `new` among them or still to be made."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    """One replica set: how many pods it is told to have, and how many of them are available."""

    name: str
    wanted: int
    available: int
    limit_before: int = 0
    """Replicas and surge of the deployment when it was last scaled; 0: not known."""


@dataclass(frozen=True)
class Limits:
    replicas: int
    surge: int
    unavailable: int

    @property
    def most(self) -> int:
        return self.replicas + self.surge

    @property
    def least(self) -> int:
        return self.replicas - self.unavailable


Scales = Mapping[str, int]
"""The replica sets to change, with their new sizes."""


def limits(replicas: int, max_surge: int | str, max_unavailable: int | str) -> Limits:
    """Percentages of the replicas: surge rounded up, unavailable down, and never both zero."""
    surge, unavailable = share(max_surge, replicas, up=True), share(max_unavailable, replicas, up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return Limits(replicas, surge, min(unavailable, replicas))


def share(amount: int | str, of: int, *, up: bool) -> int:
    """A number as it is, a percentage of a whole."""
    if isinstance(amount, int):
        return amount
    percent = int(amount.removesuffix("%"))
    return math.ceil(percent * of / 100) if up else percent * of // 100


def grown(new: int, total: int, bounds: Limits) -> int:
    """The size of the new replica set, given its own size and that of all of them together."""
    if new >= bounds.replicas:
        return bounds.replicas
    return new + max(0, min(bounds.most - total, bounds.replicas - new))


def shrunk(old: Sequence[Size], new: Size, bounds: Limits) -> Scales:
    """What old replica sets may give up now: first what is not available anyway, then what the new one made up for."""
    total = sum(each.wanted for each in old) + new.wanted
    spare = total - bounds.least - (new.wanted - new.available)
    if spare <= 0:
        return {}
    sizes = {each.name: each.wanted for each in old}
    for each in old:
        gone = min(spare, max(0, each.wanted - each.available))
        sizes[each.name] -= gone
        spare -= gone
    spare = sum(each.available for each in old) + new.available - bounds.least
    for each in old:
        gone = min(max(0, spare), sizes[each.name])
        sizes[each.name] -= gone
        spare -= gone
    return {each.name: sizes[each.name] for each in old if sizes[each.name] != each.wanted}


def spread(sizes: Sequence[Size], bounds: Limits) -> Scales:
    """After the deployment itself was scaled in the middle of a rollout: each in proportion, rest to the largest.

    `sizes` come largest first."""
    allowed = bounds.most if bounds.replicas else 0
    missing = allowed - sum(each.wanted for each in sizes)
    if not missing or not sizes:
        return {}
    scaled, added = {}, 0
    for each in sizes:
        part = _part(each, bounds, missing, added)
        scaled[each.name] = each.wanted + part
        added += part
    largest = sizes[0].name
    scaled[largest] = max(0, scaled[largest] + missing - added)
    return scaled


def _part(size: Size, bounds: Limits, missing: int, added: int) -> int:
    if not size.wanted or missing == added:
        return 0
    fair = _fair(size, bounds)
    return min(fair, missing - added) if missing > 0 else max(fair, missing - added)


def _fair(size: Size, bounds: Limits) -> int:
    if not bounds.replicas:
        return -size.wanted
    if not size.limit_before:
        return 0
    # Halves are rounded away from zero, as Go does it; sizes are never negative.
    return math.floor(size.wanted * bounds.most / size.limit_before + 0.5) - size.wanted
