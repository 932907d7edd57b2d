"""The history of a scenario: one entry per event of a pod or a node, in order.

`HistoryRecorder` watches the embedded API server while a scenario plays. `judge` and the command line read the entries,
from memory or from a file. The history has everything that is judged, so a later judge can judge it again."""

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec
from msgspec import Struct

from numalign.simulator.apiserver.storage import resources
from numalign.simulator.apiserver.verbs.api import Api, Change
from numalign.simulator.trees import Tree

What = Literal[
    "created", "bound", "refused", "rejected", "started", "finished", "failed", "deleted", "node", "node-gone"
]


class HistoryEntry(Struct, frozen=True, omit_defaults=True):
    """`at` is in seconds from the start; `why` is a reason, `words` its message."""

    at: float
    what: What
    name: str
    namespace: str = ""
    uid: str = ""
    node: str = ""
    owner: str = ""
    scheduler: str = ""
    why: str = ""
    words: str = ""


class HistoryRecorder:
    def __init__(self, api: Api) -> None:
        self.lines: list[HistoryEntry] = []
        self._clock = api.clock
        self._began = api.clock.now()
        self._subscriptions = (api.subscribe(resources.PODS, self._pod), api.subscribe(resources.NODES, self._node))

    def stop(self) -> None:
        for each in self._subscriptions:
            each.cancel()

    def _node(self, change: Change) -> None:
        if change.kind == "ADDED":
            self._write("node", change.tree)
        elif change.kind == "DELETED":
            self._write("node-gone", change.tree)

    def _pod(self, change: Change) -> None:
        if change.kind == "DELETED":
            return self._write("deleted", change.tree)
        before = {} if change.old is None else change.old
        if not before:
            self._write("created", change.tree)
        for what, why, words in steps(before, change.tree):
            self._write(what, change.tree, why, words)

    def _write(self, what: What, tree: Tree, why: str = "", words: str = "") -> None:
        meta, spec = tree["metadata"], tree.get("spec", {})
        self.lines.append(
            HistoryEntry(
                at=round(self._clock.now() - self._began, 6),
                what=what,
                name=meta["name"],
                namespace=meta.get("namespace", ""),
                uid=meta.get("uid", ""),
                node=spec.get("nodeName", ""),
                owner=next((owner["name"] for owner in meta.get("ownerReferences", ()) if owner.get("controller")), ""),
                scheduler=spec.get("schedulerName", ""),
                why=why,
                words=words,
            )
        )


def steps(before: Tree, after: Tree) -> Iterator[tuple[What, str, str]]:
    """The events between two states of a pod, each with reason and message."""
    node = after["spec"].get("nodeName")
    if node and node != before.get("spec", {}).get("nodeName"):
        yield "bound", "", ""
    old, new = before.get("status", {}), after.get("status", {})
    refusal = _refusal(new)
    if refusal and refusal != _refusal(old):
        yield "refused", *refusal
    phase = new.get("phase")
    if phase == old.get("phase"):
        return
    if phase == "Running":
        yield "started", "", ""
    elif phase == "Failed" and not new.get("containerStatuses") and new.get("reason"):
        # The kubelet rejected the pod: none of its containers ran (kubelet spec 1).
        yield "rejected", new["reason"], new.get("message", "")
    elif phase in ("Succeeded", "Failed"):
        yield ("finished" if phase == "Succeeded" else "failed"), new.get("reason", ""), new.get("message", "")


def _refusal(status: Tree) -> tuple[str, str] | None:
    """Reason and message of the PodScheduled condition, if it is False."""
    for condition in status.get("conditions", ()):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return condition.get("reason", ""), condition.get("message", "")
    return None


def encode(lines: Iterable[HistoryEntry]) -> bytes:
    """One JSON document per line."""
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
