"""Records events of controllers, with the correlation that client-go applies to core/v1 events.

kube-controller-manager writes core/v1 events, whose correlation in client-go (`tools/record`) differs from that of the
events.k8s.io events which schedulers write (`kube.events`). Equal events raise a count. From the tenth event within ten
minutes that differs only in its message, events are combined into one. After 25 events about one object, one more is
written every five minutes. `EventCorrelator` decides and is pure; `EventRecorder` writes. An event that the API server
rejects is dropped."""

from typing import Final, TypeVar

from msgspec import Struct

from numalign.simulator import clock
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import EVENTS
from numalign.simulator.apiserver.verbs.api import Api, Patch
from numalign.simulator.trees import Tree

V = TypeVar("V")

COMBINED: Final = "(combined from similar events): "
MOST_ALIKE: Final = 10
ALIKE_WITHIN: Final = 600.0
BURST: Final = 25
REFILL: Final = 300.0
MOST_REMEMBERED: Final = 4096


class ControllerEvent(Struct, frozen=True):
    """An event before correlation. `about` is the uid of the object, or its name if it has none."""

    component: str
    about: str
    event_type: str
    reason: str
    message: str


class EventWrite(Struct, frozen=True):
    """`serial` 0 means a new event; otherwise the event with that serial gets this `count`."""

    serial: int
    count: int
    message: str


class _Similar(Struct):
    messages: dict[str, None]
    last: float


class _Written(Struct):
    serial: int
    count: int


class _Bucket(Struct):
    tokens: float
    last: float


class EventCorrelator:
    def __init__(self) -> None:
        self._similar: dict[tuple[str, ...], _Similar] = {}
        self._written: dict[tuple[str, ...], _Written] = {}
        self._buckets: dict[tuple[str, ...], _Bucket] = {}

    def correlate(self, occurred: ControllerEvent, now: float) -> EventWrite | None:
        """What to write for the event; None if it is dropped. After a create, the caller reports the serial
        by `created`."""
        key, message = self._combined(occurred, now)
        if not self._allowed((occurred.component, occurred.about, occurred.event_type), now):
            return None
        known = self._written.get(key)
        if known is None:
            return EventWrite(0, 1, message)
        known.count += 1
        return EventWrite(known.serial, known.count, message)

    def created(self, occurred: ControllerEvent, message: str, serial: int) -> None:
        """Remembers the serial of an event that was created."""
        self._written[self._key(occurred, message)] = _Written(serial, 1)
        _cut(self._written)

    def _combined(self, occurred: ControllerEvent, now: float) -> tuple[tuple[str, ...], str]:
        group = (occurred.component, occurred.about, occurred.event_type, occurred.reason)
        similar = self._similar.get(group)
        if similar is None or now - similar.last > ALIKE_WITHIN:
            similar = self._similar[group] = _Similar({}, now)
            _cut(self._similar)
        similar.last = now
        similar.messages[occurred.message] = None
        if len(similar.messages) < MOST_ALIKE:
            return self._key(occurred, occurred.message), occurred.message
        similar.messages.pop(next(iter(similar.messages)))
        message = COMBINED + occurred.message
        return self._key(occurred, message), message

    def _key(self, occurred: ControllerEvent, message: str) -> tuple[str, ...]:
        # All combined events of a group share one key, and the message is that of the latest.
        text = COMBINED if message.startswith(COMBINED) else message
        return occurred.component, occurred.about, occurred.event_type, occurred.reason, text

    def _allowed(self, source: tuple[str, ...], now: float) -> bool:
        bucket = self._buckets.get(source)
        if bucket is None:
            bucket = self._buckets[source] = _Bucket(BURST, now)
            _cut(self._buckets)
        bucket.tokens = min(BURST, bucket.tokens + (now - bucket.last) / REFILL)
        bucket.last = now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True


def _cut(remembered: dict[tuple[str, ...], V]) -> None:
    if len(remembered) > MOST_REMEMBERED:
        del remembered[next(iter(remembered))]


HOME = "default"
"""Namespace of events about cluster-scoped objects."""


class EventRecorder:
    """Records the events of one component."""

    def __init__(self, api: Api, component: str) -> None:
        self._api = api
        self._component = component
        self._announcer = EventCorrelator()
        self._names: dict[int, tuple[str, str]] = {}
        self._serial = 0

    def record(self, regarding: Tree, event_type: str, reason: str, message: str) -> None:
        about = regarding["metadata"].get("uid") or regarding["metadata"]["name"]
        occurred = ControllerEvent(self._component, about, event_type, reason, message)
        write = self._announcer.correlate(occurred, self._api.clock.now())
        if write is None:
            return
        try:
            self._count(write) if write.serial else self._create(regarding, occurred, write)
        except StatusError:
            return

    def _create(self, regarding: Tree, occurred: ControllerEvent, write: EventWrite) -> None:
        event = self._event(regarding, occurred, write)
        self._api.create(EVENTS, event)
        self._serial += 1
        self._names[self._serial] = (event["metadata"]["name"], event["metadata"]["namespace"])
        self._announcer.created(occurred, write.message, self._serial)

    def _count(self, write: EventWrite) -> None:
        name, namespace = self._names[write.serial]
        body = {
            "count": write.count,
            "message": write.message,
            "lastTimestamp": clock.text(self._api.clock.wall()),
        }
        self._api.patch(EVENTS, name, namespace, Patch("merge", body))

    def _event(self, regarding: Tree, occurred: ControllerEvent, write: EventWrite) -> Tree:
        metadata, wall = regarding["metadata"], self._api.clock.wall()
        # client-go uses nanoseconds as the suffix. Many events share a moment here, so a serial number follows.
        stamp = f"{int(wall.timestamp() * 1e6):x}{self._serial + 1:x}"
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{metadata['name']}.{stamp}", "namespace": metadata.get("namespace") or HOME},
            "involvedObject": reference(regarding),
            "type": occurred.event_type,
            "reason": occurred.reason,
            "message": write.message,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": "",
            "firstTimestamp": clock.text(wall),
            "lastTimestamp": clock.text(wall),
            "count": 1,
        }


def reference(regarding: Tree) -> Tree:
    """A reference to the object; fields that the object does not have are omitted."""
    metadata = regarding["metadata"]
    found = {
        "apiVersion": regarding.get("apiVersion"),
        "kind": regarding.get("kind"),
        "name": metadata["name"],
        "namespace": metadata.get("namespace"),
        "uid": metadata.get("uid"),
        "resourceVersion": metadata.get("resourceVersion"),
    }
    return {key: value for key, value in found.items() if value}
