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
"""Reports after which a report is certainly younger than an observed event; `coverage` explains it."""
PATIENT: Final = 12
"""The same if the fingerprint contradicts: the report may have been delayed, with others after it."""
STUBBORN: Final = 64
"""The same if the report names its pods: a pod that is never named holds nothing."""

LIVE: Final = PodLife.LIVE
COVERED: Final = Cover.YES
"""Looked up once, because every fact about a pod needs them."""


class PodHistory(Struct, kw_only=True, gc=False, omit_defaults=True, rename="camel"):
    """The history of one pod on one node. It does not follow from the pod or the report, so dumps contain it."""

    uid: str
    order: int
    """A counter that gives the order of binding, as far as it was observed."""
    bound: bool = False
    """Whether the API server has shown the pod on this node; otherwise its Binding is in flight."""
    after: int = -1
    """For a decision of this scheduler: the report count at that time. Reports up to then cannot cover the pod."""
    holding: Holding | None = None
    """None: the pod is not placed by the model yet."""
    hidden: tuple[Entry, ...] = ()
    life: PodLife = PodLife.LIVE
    cover: Cover = Cover.NO
    reported: bool = False
    """Whether any report covered the pod."""
    found: bool = False
    """Whether the pod was running when it was first seen."""
    started: int | None = None
    """Report count when the pod was first seen running."""
    start_order: int = 0
    """A counter of the same moment; comparable with `order`."""
    ended: int = 0
    """Report count when the pod ended or its object was deleted."""
    end_order: int = 0
    until: float = 0.0
    """When a deleted pod has certainly stopped."""


class PodRecord(PodHistory, kw_only=True, eq=False, gc=False):
    """One pod on one node."""

    name: str
    """namespace/name"""
    pod: Pod
    listed: PodPlacement | None = None
    """The placement in the latest report."""
    forecast: Forecast | None = None
    """The forecast of the scheduler that bound the pod, until the pod is placed or reported."""
    absent: bool = False
    """Whether the pod is left out temporarily, as if it had ended."""
    share: PodCharges = charges.NONE
    signed: int | None = None
    """See `hash`; None: not computed yet."""

    def start(self, report_count: int, order: int) -> None:
        """Records that the pod was seen running."""
        self.started, self.start_order = report_count, order

    def end(self, life: PodLife, report_count: int, order: int) -> None:
        """Records that the pod ended, or that its object was deleted while its containers may still run."""
        self.life, self.ended, self.end_order = life, report_count, order

    @property
    def hash(self) -> int:
        """The pod's hash in fingerprints."""
        if self.signed is None:
            self.signed = fingerprint.pod_hash(self.pod.metadata.namespace, self.pod.metadata.name)
        return self.signed

    @property
    def is_pending(self) -> bool:
        """Whether the pod is bound, in no report, and not known to be admitted, so its admission order is open (R2).

        Pods that hold nothing exclusively are never pending."""
        if self.life is not LIVE or self.cover is COVERED or self.started is not None or self.absent:
            return False
        return self.holding is None or bool(self.holding.entries)

    @property
    def is_quiet(self) -> bool:
        """Whether a report with the same placement of the pod changes nothing."""
        if self.cover is not COVERED or self.life is not LIVE or self.listed is None or self.holding is None:
            return False
        return not self.pod.spec.init_containers

    def is_settled(self, report_count: int, sure: int = SURE) -> bool:
        """Whether the latest report certainly covers the pod, by the age of its observed start."""
        return self.cover is Cover.YES or (self.started is not None and report_count >= self.started + sure)

    def is_forgotten(self, report_count: int, sure: int = SURE) -> bool:
        """Whether the report was certainly made after the pod ended."""
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
    # Most pods have none, and every fact about a pod needs this.
    return bool(containers) and any(not container.is_sidecar for container in containers)


AFTER_GRACE: Final = 10.0
"""Seconds that a deleted pod stays charged beyond its grace period."""
LONGEST_WAIT: Final = 30.0
"""Seconds for which other pods wait for the end of a terminating pod: the grace period by default."""
REMEMBERED: Final = 600.0
"""Seconds for which late events about an ended pod are recognised."""


class EndedPodsDump(Struct, frozen=True, omit_defaults=True):
    """`EndedPods` as plain data."""

    left: dict[str, float] = {}
    waiting: tuple[tuple[float, str, str], ...] = ()


class EndedPods:
    """Pods that ended, and when deleted pods have certainly stopped."""

    def __init__(self) -> None:
        self._left: dict[str, float] = {}
        self._waiting: list[tuple[float, str, str]] = []

    def __contains__(self, uid: str) -> bool:
        return uid in self._left

    def dump(self) -> EndedPodsDump:
        return EndedPodsDump(dict(self._left), tuple(self._waiting))

    def adopt(self, copy: EndedPodsDump) -> None:
        self._left, self._waiting = dict(copy.left), list(copy.waiting)

    def note(self, uid: str, now: float) -> None:
        self._left.pop(uid, None)
        self._left[uid] = now

    def wait_for(self, pod: Pod, uid: str, node: str, now: float) -> float:
        """Records when a pod that was deleted while running has certainly stopped."""
        grace = pod.metadata.deletion_grace_period_seconds
        seconds = pod.spec.termination_grace_period_seconds if grace is None else grace
        until = now + max(seconds, 0) + AFTER_GRACE
        heapq.heappush(self._waiting, (until, uid, node))
        return until

    def expect(self, uid: str, node: str, now: float) -> None:
        """Records that a pod began to terminate, and that other pods may wait for its end."""
        heapq.heappush(self._waiting, (now + LONGEST_WAIT, uid, node))

    def forgotten(self, now: float) -> list[str]:
        """Pods whose end is no longer remembered; each is returned once."""
        found = []
        while self._left and next(iter(self._left.values())) <= now - REMEMBERED:
            found.append(next(iter(self._left)))
            del self._left[found[-1]]
        return found

    def due(self, now: float) -> list[tuple[float, str, str]]:
        """Time, uid and node of deleted pods for which nothing waits any longer: they have certainly stopped by now, or
        they terminate slowly."""
        found = []
        while self._waiting and self._waiting[0][0] <= now:
            found.append(heapq.heappop(self._waiting))
        return found
