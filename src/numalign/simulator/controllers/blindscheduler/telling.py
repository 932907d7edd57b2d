"""What the scheduler writes besides bindings: events, and the PodScheduled condition of a pod that must wait.

In stock's words and form (kube-scheduler spec 4.9, 7.6); a condition that is as it should be is not written again."""

from typing import Final

import msgspec

from numalign.api.objects.pod import DEFAULT_SCHEDULER
from numalign.kube.events import events
from numalign.kube.events.events import Correlator, Count, Occurrence, Reporter
from numalign.kube.objects import ObjectReference
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import NEW_EVENTS, PODS
from numalign.simulator.apiserver.verbs.api import Api, Patch
from numalign.simulator.controllers.framework import conditions
from numalign.simulator.trees import Tree

HOST: Final = "embedded"
SCHEDULED: Final = "PodScheduled"
TIDY_EVERY: Final = 60.0
"""Seconds between two looks for series of events that have ended."""


class Teller:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._correlators: dict[str, Correlator] = {}
        self._tidied = api.clock.now()

    def scheduled(self, pod: Tree, node: str) -> None:
        name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        note = f"Successfully assigned {name} to {node}"
        self._tell(pod, Occurrence(regarding=_reference(pod), reason="Scheduled", action="Binding", note=note))

    def refused(self, pod: Tree, why: str) -> None:
        self._tell(
            pod,
            Occurrence(
                regarding=_reference(pod), reason="FailedScheduling", action="Scheduling", note=why, type="Warning"
            ),
        )
        told = conditions.made(SCHEDULED, "False", "Unschedulable", why)
        told["observedGeneration"] = pod["metadata"].get("generation", 0)
        listed = conditions.listed(pod)
        wanted = conditions.put(listed, told, self._api.clock.wall())
        if wanted != listed:
            self._patch(pod, wanted)

    def _patch(self, pod: Tree, listed: conditions.Conditions) -> None:
        metadata = pod["metadata"]
        condition = conditions.find(listed, SCHEDULED)
        body = {"metadata": {"uid": metadata["uid"]}, "status": {"conditions": [condition]}}
        try:
            self._api.patch(PODS, metadata["name"], metadata["namespace"], Patch("strategic", body), part="status")
        except StatusError:
            # The pod is gone or another one by now, which the watch tells too.
            return

    def _tell(self, pod: Tree, what: Occurrence) -> None:
        name = pod["spec"].get("schedulerName", DEFAULT_SCHEDULER)
        correlator = self._correlators.setdefault(name, Correlator(Reporter(name, f"{name}-{HOST}")))
        now = self._api.clock.now()
        write = correlator.happened(what, now, self._api.clock.wall())
        if write is not None:
            self._write(write)
        if now - self._tidied >= TIDY_EVERY:
            self._tidied = now
            for each in (each for kept in self._correlators.values() for each in kept.due(now)):
                self._write(each)

    def _write(self, write: events.Write) -> None:
        tree: Tree = msgspec.to_builtins(write.event)
        metadata = tree["metadata"]
        try:
            if isinstance(write, Count):
                body = {"series": tree["series"]}
                self._api.patch(NEW_EVENTS, metadata["name"], metadata["namespace"], Patch("merge", body))
            else:
                self._api.create(NEW_EVENTS, tree)
        except StatusError:
            # The namespace may be going away; nobody waits for an event.
            return


def _reference(pod: Tree) -> ObjectReference:
    metadata = pod["metadata"]
    return ObjectReference(
        api_version="v1", kind="Pod", namespace=metadata["namespace"], name=metadata["name"], uid=metadata["uid"]
    )
