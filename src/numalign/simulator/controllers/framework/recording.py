"""Writes the controllers' events, in the form that kube-controller-manager gives them.

`performing` and the drivers hand an object and a sentence over; `announcing` decides what becomes of it. An event that
cannot be written (its namespace is going away) is dropped: nobody ever waits for one."""

from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import EVENTS
from numalign.simulator.apiserver.verbs.api import Api, Patch
from numalign.simulator.controllers.framework import moments
from numalign.simulator.controllers.framework.announcing import Announcer, Told, Write
from numalign.simulator.trees import Tree

HOME = "default"
"""Namespace of events about what has none."""


class Recorder:
    """One component's; all share the numbers that keep event names apart."""

    def __init__(self, api: Api, component: str) -> None:
        self._api = api
        self._component = component
        self._announcer = Announcer()
        self._names: dict[int, tuple[str, str]] = {}
        self._serial = 0

    def record(self, regarding: Tree, gravity: str, reason: str, message: str) -> None:
        about = regarding["metadata"].get("uid") or regarding["metadata"]["name"]
        told = Told(self._component, about, gravity, reason, message)
        write = self._announcer.heard(told, self._api.clock.now())
        if write is None:
            return
        try:
            self._count(write) if write.serial else self._create(regarding, told, write)
        except StatusError:
            return

    def _create(self, regarding: Tree, told: Told, write: Write) -> None:
        event = self._event(regarding, told, write)
        self._api.create(EVENTS, event)
        self._serial += 1
        self._names[self._serial] = (event["metadata"]["name"], event["metadata"]["namespace"])
        self._announcer.wrote(told, write.message, self._serial)

    def _count(self, write: Write) -> None:
        name, namespace = self._names[write.serial]
        body = {
            "count": write.count,
            "message": write.message,
            "lastTimestamp": moments.written(self._api.clock.wall()),
        }
        self._api.patch(EVENTS, name, namespace, Patch("merge", body))

    def _event(self, regarding: Tree, told: Told, write: Write) -> Tree:
        metadata, wall = regarding["metadata"], self._api.clock.wall()
        # The real name ends in nanoseconds; here many events share a moment, so the serial number follows.
        stamp = f"{int(wall.timestamp() * 1e6):x}{self._serial + 1:x}"
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{metadata['name']}.{stamp}", "namespace": metadata.get("namespace") or HOME},
            "involvedObject": reference(regarding),
            "type": told.gravity,
            "reason": told.reason,
            "message": write.message,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": "",
            "firstTimestamp": moments.written(wall),
            "lastTimestamp": moments.written(wall),
            "count": 1,
        }


def reference(regarding: Tree) -> Tree:
    """To an object, as events carry it; fields that the object lacks are left out."""
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
