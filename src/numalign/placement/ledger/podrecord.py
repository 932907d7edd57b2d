"""The ledger's record of one pod on one node, and of pods that ended.

`ledger` makes and changes records, `coverage` judges them, `nodeledger` adds up their charges. Times are counted in
reports: how many different reports of the node had come in (`report_count`). `EndedPods` remembers pods that finished
or were deleted, so that late events about them are recognised, and pods that may still run after their object was
deleted."""

from __future__ import annotations

import heapq
from typing import Final

from msgspec import Struct

from numalign.api.attributes.podplacements import PodPlacement
from numalign.api.nrt import fingerprint
from numalign.api.objects.pod import Pod
from numalign.placement.columns.holdings import Entry, Holding, Source
from numalign.placement.facts import Forecast
from numalign.placement.ledger import charges
from numalign.placement.ledger.charges import Cover, PodCharges, PodLife

SURE: Final = 2
"""Reports after which a report is surely younger than something that was seen; `coverage` says why."""
PATIENT: Final = 12
"""The same where the report's fingerprint says otherwise: it may have been long on its way, with others after it."""
STUBBORN: Final = 64
"""The same where the report names its pods: in the end, one that is never named holds nothing."""

LIVE: Final = PodLife.LIVE
COVERED: Final = Cover.YES
"""Looked up once: every fact about a pod asks for them."""


class PodHistory(Struct, kw_only=True, gc=False, omit_defaults=True, rename="camel"):
    """What has become of one pod on one node. It does not follow from the pod or from the report, so dumps keep it."""

    uid: str
    order: int
    """Grows from pod to pod: the order of binding, as far as it was seen."""
    bound: bool = False
    """Whether the API server was seen to have it on this node; else it is a decision on its way."""
    after: int = -1
    """For a decision of ours: the report count when it was made. What was reported up to then cannot cover it."""
    holding: Holding | None = None
    """None: the model was not asked yet where it may be."""
    hidden: tuple[Entry, ...] = ()
    life: PodLife = PodLife.LIVE
    cover: Cover = Cover.NO
    reported: bool = False
    """Whether any report had it."""
    found: bool = False
    """Whether it ran already when it was first seen."""
    started: int | None = None
    """Report count when it was first seen to have started."""
    start_order: int = 0
    """Then, too: grows with `order`."""
    ended: int = 0
    """Report count when it ended or began to linger."""
    end_order: int = 0
    until: float = 0.0
    """When lingering ends."""


class PodRecord(PodHistory, kw_only=True, eq=False, gc=False):
    """One pod on one node."""

    name: str
    """namespace/name"""
    pod: Pod
    listed: PodPlacement | None = None
    """What a report last said of it."""
    forecast: Forecast | None = None
    """Where it was to go when another scheduler bound it, until it is placed or reported."""
    absent: bool = False
    """Left out for the time being, as if it had ended."""
    share: PodCharges = charges.NONE
    signed: int | None = None
    """See `hash`; None: not computed yet."""

    def start(self, report_count: int, order: int) -> None:
        """It was seen to run."""
        self.started, self.start_order = report_count, order

    def end(self, life: PodLife, report_count: int, order: int) -> None:
        """It ended, or its object is gone and its containers may still run."""
        self.life, self.ended, self.end_order = life, report_count, order

    @property
    def hash(self) -> int:
        """As in the fingerprint."""
        if self.signed is None:
            self.signed = fingerprint.pod_hash(self.pod.metadata.namespace, self.pod.metadata.name)
        return self.signed

    @property
    def is_pending(self) -> bool:
        """Bound, in no report, and not known to have been admitted: its turn on the node is open (engine spec R2).

        Pods that hold nothing exclusively have no turn."""
        if self.life is not LIVE or self.cover is COVERED or self.started is not None or self.absent:
            return False
        return self.holding is None or bool(self.holding.entries)

    @property
    def is_quiet(self) -> bool:
        """Whether a report that says of it what the last one said has nothing new."""
        if self.cover is not COVERED or self.life is not LIVE or self.listed is None or self.holding is None:
            return False
        return not self.pod.spec.init_containers

    def is_settled(self, report_count: int, sure: int = SURE) -> bool:
        """Whether the latest report covers it for sure, by the age of what was seen of it."""
        return self.cover is Cover.YES or (self.started is not None and report_count >= self.started + sure)

    def is_forgotten(self, report_count: int, sure: int = SURE) -> bool:
        """Whether the report was surely made after it had ended."""
        return self.life is not PodLife.LIVE and report_count >= self.ended + sure

    @property
    def is_predicted(self) -> bool:
        return self.holding is not None and self.holding.source is Source.PREDICTED

    def computed_share(self) -> PodCharges:
        if self.holding is None:
            return charges.NONE
        life = PodLife.ENDED if self.absent else self.life
        return charges.share(
            self.holding, self.hidden, life, self._cover_at_end() if life is PodLife.ENDED else self.cover
        )

    def _cover_at_end(self) -> Cover:
        # Of what a pod with plain init containers holds, a report shows a part that is not known (engine spec R3).
        known = self.listed is not None or not has_init_steps(self.pod)
        return Cover.DOUBT if self.cover is Cover.YES and not known else self.cover


def has_init_steps(pod: Pod) -> bool:
    containers = pod.spec.init_containers
    # Most pods have none, and every fact about a pod asks.
    return bool(containers) and any(not container.is_sidecar for container in containers)


AFTER_GRACE: Final = 10.0
"""Seconds that a deleted pod stays charged beyond its grace period."""
REMEMBERED: Final = 600.0
"""Seconds in which a late word about a pod that ended is recognised as such."""


class EndedPods:
    """Who left, and when it is surely over."""

    def __init__(self) -> None:
        self._left: dict[str, float] = {}
        self._waiting: list[tuple[float, str, str]] = []

    def __contains__(self, uid: str) -> bool:
        return uid in self._left

    def note(self, uid: str, now: float) -> None:
        self._left.pop(uid, None)
        self._left[uid] = now

    def wait_for(self, pod: Pod, uid: str, node: str, now: float) -> float:
        """When a pod that was deleted while it ran has surely stopped on the node."""
        grace = pod.metadata.deletion_grace_period_seconds
        seconds = pod.spec.termination_grace_period_seconds if grace is None else grace
        until = now + max(seconds, 0) + AFTER_GRACE
        heapq.heappush(self._waiting, (until, uid, node))
        return until

    def forgotten(self, now: float) -> list[str]:
        """Pods that ended so long ago that they are forgotten; each is returned once."""
        found = []
        while self._left and next(iter(self._left.values())) <= now - REMEMBERED:
            found.append(next(iter(self._left)))
            del self._left[found[-1]]
        return found

    def due(self, now: float) -> list[tuple[float, str, str]]:
        """Time, uid and node of waits that are over."""
        found = []
        while self._waiting and self._waiting[0][0] <= now:
            found.append(heapq.heappop(self._waiting))
        return found
