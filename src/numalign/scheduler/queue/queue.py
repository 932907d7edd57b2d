"""The scheduling queue: which pending pod is scheduled next, and which pods wait for what.

`intake` adds, updates and deletes pods and reports cluster events; `cycle` pops a pod and returns it if no node
fits. A pod is in exactly one pool, or in flight (kube-scheduler spec 3). Events that occur while a pod is in flight
are replayed to it when it returns. Pods that stay in flight very long may lose the oldest of these events; they are
then assumed to match. Pure: `now` is an argument, and `due` says when to ask again."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct, structs

from numalign.api.objects.pod import Pod
from numalign.placement.decisions import Wake, WakeCause
from numalign.scheduler.profiles import ZONES
from numalign.scheduler.queue import clusterevents
from numalign.scheduler.queue.clusterevents import ObjectChange, Resource
from numalign.scheduler.queue.nominations import Nominations
from numalign.scheduler.queue.pools import PodBackoff, WaitingPods
from numalign.scheduler.queue.queued import ERROR, Gate, QueuedPod, Rejection, SchedulingGates
from numalign.scheduler.queue.wakeups import QueueingStrategy, Wakeups

MOST_EVENTS: Final = 20_000


class InFlightPod(Struct, eq=False):
    queued: QueuedPod
    start: int
    """The number of events recorded when the attempt began."""
    latest: Pod
    """The latest version of the pod; the attempt itself uses the version that it began with."""
    over: bool = False
    """The pod was deleted or bound, and must not return to the queue."""


class InFlightPods:
    def __init__(self, most_events: int = MOST_EVENTS) -> None:
        # Ordered by start. An OrderedDict returns its first item quickly after many removals; a dict does not.
        self._flights: OrderedDict[str, InFlightPod] = OrderedDict()
        self._events: deque[ObjectChange] = deque(maxlen=most_events)
        self._seen = 0

    def start(self, queued: QueuedPod) -> None:
        self._flights[queued.uid] = InFlightPod(queued, self._seen, queued.pod)

    def get(self, uid: str) -> InFlightPod | None:
        return self._flights.get(uid)

    def record(self, happening: ObjectChange) -> None:
        if self._flights:
            self._events.append(happening)
            self._seen += 1

    def missed(self, flight: InFlightPod) -> tuple[ObjectChange, ...] | None:
        """The events since the attempt began, the latest first; None: older ones were dropped."""
        count = self._seen - flight.start
        if count > len(self._events):
            return None
        latest_first = islice(reversed(self._events), count)
        return tuple(each for each in latest_first if each.uid in ("", flight.queued.uid))

    def land(self, uid: str) -> InFlightPod | None:
        flight = self._flights.pop(uid, None)
        # The attempt that began first needs every event that the others need.
        oldest = next(iter(self._flights.values()), None)
        needed = self._seen - oldest.start if oldest is not None else 0
        while len(self._events) > needed:
            self._events.popleft()
        return flight

    def uids(self) -> tuple[str, ...]:
        return tuple(self._flights)

    def all(self) -> tuple[InFlightPod, ...]:
        return tuple(self._flights.values())

    def kept(self) -> Counter[str]:
        """Events that are kept, by label."""
        return Counter(each.event.label for each in self._events)

    def __len__(self) -> int:
        return len(self._flights)


FLUSH_PERIOD: Final = 30.0
ADDED: Final = clusterevents.POD_ADDED.label
ANYTHING_HELPS: Final = Wakeups({})


class QueueSettings(Struct, frozen=True, kw_only=True):
    backoff: PodBackoff = PodBackoff()
    longest_parked: float = 300.0
    """Seconds after which a pod is scheduled again without an event that helps it."""


DEFAULTS: Final = QueueSettings()


class SchedulingQueue:
    def __init__(
        self,
        wakeups: Mapping[str, Wakeups],
        more_gates: Sequence[Gate] = (),
        settings: QueueSettings = DEFAULTS,
        nominations: Nominations | None = None,
    ) -> None:
        """`wakeups` by profile; `more_gates` beside the pods' own scheduling gates."""
        self.nominations = Nominations() if nominations is None else nominations
        self.attempts = 0
        self.bound_after_flush = 0
        """Pods that got a node after being tried for no known reason: each is a wake-up that was missed."""
        self._wakeups, self._settings = wakeups, settings
        self._waiting = WaitingPods(settings.backoff, (SchedulingGates(), *more_gates))
        self._flights = InFlightPods()
        self._added = 0
        self._flushed: float | None = None

    # Changes of pods

    def add(self, pod: Pod, now: float) -> None:
        """Adds a pod of our profiles without a node, or updates it if it is known."""
        uid = pod.metadata.uid
        if self._waiting.get(uid) is not None or self._flights.get(uid) is not None:
            self.update(pod, now)
            return
        self._added += 1
        self.nominations.put(pod, pod.status.nominated_node_name)
        queued = QueuedPod(pod=pod, added=now, since=now, number=self._added)
        self._waiting.make_ready(queued, ADDED, now)

    def update(self, pod: Pod, now: float) -> None:
        """Updates a pod that still has no node."""
        uid = pod.metadata.uid
        before, nominated = self._latest(uid), self.nominations.node_of(uid)
        if before is None and self._flights.get(uid) is None:
            self.add(pod, now)
        if before is None or pod.metadata.resource_version == before.metadata.resource_version != "":
            return
        self.nominations.update(before, pod)
        self._replace(before, pod, now)
        if nominated and nominated != self.nominations.node_of(uid):
            self._release(before, nominated, now)

    def delete(self, uid: str, now: float) -> None:
        """Removes a deleted pod."""
        pod, nominated = self._latest(uid) or self.nominations.pod(uid), self.nominations.node_of(uid)
        self.assigned(uid)
        if pod is not None and nominated:
            self._release(pod, nominated, now)

    def assigned(self, uid: str) -> None:
        """Removes a pod that has a node, assigned by this scheduler or another."""
        self.nominations.remove(uid)
        self._waiting.remove(uid)
        flight = self._flights.get(uid)
        if flight is not None:
            flight.over = True

    def follow(self, pod: Pod, now: float) -> None:
        """A pod without a node was seen that another scheduler schedules: its nomination counts here, too."""
        left = self.nominations.follow(pod)
        if left:
            self._release(pod, left, now)

    def nominate(self, uid: str, node: str, now: float, elsewhere: Pod | None = None) -> None:
        """Nominates a pending pod to a node; an empty name clears the nomination. `elsewhere`: the pod, if another
        scheduler may schedule it."""
        pod, nominated = self._latest(uid) or elsewhere, self.nominations.node_of(uid)
        if pod is None:
            return
        self.nominations.put(pod, node)
        if nominated and nominated != node:
            self._release(pod, nominated, now)

    # Attempts

    def pop(self, now: float) -> QueuedPod | None:
        """The next pod to try; None: no pod is ready. Callers must park or finish every popped pod."""
        self.flush(now)
        queued = self._waiting.pop(now)
        if queued is None:
            return None
        queued.attempts += 1
        self.attempts += 1
        self._flights.start(queued)
        return queued

    def park(self, uid: str, rejection: Rejection, now: float) -> QueuedPod | None:
        """Returns a rejected pod to the queue; None: the pod was deleted or bound meanwhile, so nothing is written."""
        flight = self._flights.get(uid)
        if flight is None:
            return None
        missed = self._flights.missed(flight)
        self._flights.land(uid)
        if flight.over:
            return None
        queued = flight.queued
        queued.came_back(flight.latest, rejection, now)
        self._waiting.put(queued, self._played_back(queued, missed), clusterevents.ATTEMPT_FAILED, now)
        return queued

    def fail(self, uid: str, now: float) -> QueuedPod | None:
        """Returns a pod whose attempt failed with an error."""
        return self.park(uid, ERROR, now)

    def done(self, uid: str, *, bound: bool = False) -> None:
        """Ends the attempt of a pod that does not return to the queue."""
        flight = self._flights.land(uid)
        self.nominations.remove(uid)
        if flight is not None and bound and flight.queued.by_flush:
            self.bound_after_flush += 1

    # Cluster events

    def move(self, happening: ObjectChange, now: float, at_most: int | None = None) -> int:
        """Wakes the pods that the event may help, of a priority up to `at_most`; returns their number."""
        self._flights.record(happening)
        if not self._waiting.parked:
            return 0
        concerned = [
            each for each in self._concerned(happening) if at_most is None or each.pod.spec.priority <= at_most
        ]
        return sum(self._reconsider(queued, (happening,), now) for queued in concerned)

    def wake(self, wakes: Iterable[Wake], now: float) -> int:
        """Wakes pods for improvements of nodes' zones that the engine reported."""
        return sum(self.move(clusterevents.zones(wake), now) for wake in wakes)

    def activate(self, uids: Iterable[str], now: float) -> None:
        """Makes these pods active, whatever they wait for."""
        for uid in uids:
            self._waiting.activate(uid, now)
            if self._flights.get(uid) is not None:
                self._flights.record(ObjectChange(clusterevents.FORCED, uid=uid))

    def flush(self, now: float) -> None:
        """Activates pods whose backoff is over; every half minute, wakes pods that were unschedulable for too long."""
        self._waiting.end_backoffs(now)
        if self._flushed is None or now >= self._flushed + FLUSH_PERIOD:
            self._flushed = now
            self._flush_parked(now)

    def due(self, now: float) -> float | None:
        """When a pod becomes ready without any further event; None: never."""
        times = [self._waiting.due(now)]
        if self._waiting.parked:
            times.append(max(now, (now if self._flushed is None else self._flushed) + FLUSH_PERIOD))
        return min((time for time in times if time is not None), default=None)

    # Read access

    @property
    def incoming(self) -> Counter[tuple[str, str]]:
        """The number of pods that entered a pool, by pool and event."""
        return self._waiting.incoming

    def pending(self) -> dict[str, list[QueuedPod]]:
        """Pending pods by pool, under the names that metrics use; active pods in scheduling order."""
        return self._waiting.by_pool()

    def refusing(self) -> Counter[tuple[str, str]]:
        """The number of pods that each plugin rejects, by plugin and profile."""
        waiting = (queued for pool in self.pending().values() for queued in pool)
        return Counter((plugin, queued.profile) for queued in waiting for plugin in queued.rejecting)

    def hints(self) -> Counter[tuple[str, str, str]]:
        """How often each hint was called, by plugin, event and result."""
        return sum((table.answers for table in self._wakeups.values()), Counter[tuple[str, str, str]]())

    @property
    def is_empty(self) -> bool:
        """Whether no pod is pending. Pods in flight do not count."""
        return not len(self._waiting)

    @property
    def on_their_way(self) -> int:
        """Pods that are active or in flight."""
        return self._waiting.ready + len(self._flights)

    @property
    def flights(self) -> InFlightPods:
        """Pods in flight, with the events recorded for them."""
        return self._flights

    # Decisions

    def _replace(self, old: Pod, new: Pod, now: float) -> None:
        uid = new.metadata.uid
        events = clusterevents.pod_changes(old, new, Resource.TARGET_POD)
        happenings = [ObjectChange(event, old, new, uid) for event in events]
        flight, queued = self._flights.get(uid), self._waiting.get(uid)
        if flight is not None:
            flight.latest = new
            for happening in happenings:
                self._flights.record(happening)
        elif queued is not None:
            queued.pod = new
            if self._waiting.parked.get(uid) is not None:
                self._reconsider(queued, happenings, now)

    def _reconsider(self, queued: QueuedPod, happenings: Iterable[ObjectChange], now: float) -> bool:
        """Moves an unschedulable pod to another pool if an event may help it; whether it was moved."""
        for happening in happenings:
            strategy = self._table(queued.profile).strategy(queued, happening)
            if strategy is not QueueingStrategy.SKIP:
                return self._waiting.put(queued, strategy, happening.event.label, now)
        return False

    def _played_back(self, queued: QueuedPod, missed: Sequence[ObjectChange] | None) -> QueueingStrategy:
        if queued.rejection.is_error or missed is None:
            return QueueingStrategy.AFTER_BACKOFF
        table = self._table(queued.profile)
        return max((table.strategy(queued, happening) for happening in missed), default=QueueingStrategy.SKIP)

    def _concerned(self, happening: ObjectChange) -> list[QueuedPod]:
        """Unschedulable pods that were rejected by a plugin which the event concerns; each once."""
        found, parked = dict[str, QueuedPod](), self._waiting.parked
        for (profile, plugin), members in parked.by_rejector.items():
            if self._table(profile).concerns(plugin, happening.event):
                found |= members if plugin != ZONES else parked.blocked(happening.new)
        # A gated pod stays until its gate opens, whatever else would help.
        return [
            each
            for each in found.values()
            if not each.gate or self._table(each.profile).concerns(each.gate, happening.event)
        ]

    def _flush_parked(self, now: float) -> None:
        for queued in list(self._waiting.parked):
            waits_since = max(queued.since, queued.flushed or queued.since)
            if now - waits_since > self._settings.longest_parked:
                queued.flushed, queued.by_flush = now, True
                self._waiting.put(queued, QueueingStrategy.AFTER_BACKOFF, clusterevents.TIMED_OUT.label, now)

    def _release(self, pod: Pod, node: str, now: float) -> None:
        """Wakes the pods that had to leave the nominated pod's resources free (kube-scheduler spec 3.5)."""
        placed = structs.replace(pod, spec=structs.replace(pod.spec, node_name=node))
        freed = ObjectChange(clusterevents.ASSIGNED_POD_DELETED, old=placed)
        for happening in (freed, clusterevents.zones(Wake(node, WakeCause.FREED))):
            self.move(happening, now, at_most=pod.spec.priority)

    def _table(self, profile: str) -> Wakeups:
        return self._wakeups.get(profile, ANYTHING_HELPS)

    def _latest(self, uid: str) -> Pod | None:
        """The latest version of the pod; None: it is not pending."""
        flight, queued = self._flights.get(uid), self._waiting.get(uid)
        if flight is not None:
            return None if flight.over else flight.latest
        return queued.pod if queued is not None else None
