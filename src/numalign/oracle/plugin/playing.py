"""Replays a history on numalign's reference flavour, as v0.34.7 or as the product.

`judging` compares the answers. `play` handles the steps as the oracle program does with the real plugin: two
dictionaries serve as API server, informers notify the cache, Filter and Score use the cached reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Struct

from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects.pod import Pod
from numalign.oracle.plugin import defects, dialect
from numalign.oracle.plugin.dialect import Dialect, Habit
from numalign.oracle.plugin.history import History, Step
from numalign.placement.reference import args, classes, demand, filter, numanodes, scoring
from numalign.placement.reference.args import InformerMode, NodeResourceTopologyMatchArgs
from numalign.placement.reference.caches import podgroups
from numalign.placement.reference.caches.cache import Lookup
from numalign.placement.reference.caches.overreserve import OverReserve
from numalign.placement.reference.caches.podgroups import PodKey
from numalign.placement.reference.demand import PodDemand
from numalign.placement.reference.filter import Seen
from numalign.placement.reference.numanodes import Reading
from numalign.placement.reference.status import Status

RESERVED: Final = {"code": "Success", "reasons": [""]}
"""The plugin's Reserve always returns this."""
PANIC: Final = {"panic": ""}


class Answer(Struct, frozen=True):
    """The answer to one step. For Filter and Score it includes the product's answer and the report used."""

    said: Any = None
    own: Mapping[str, Any] = {}
    known: Mapping[str, Lookup] = {}


NOTHING: Final = Answer()


class Script(Struct, frozen=True):
    """A history with what every replay needs; `demands` has the pods of Filter and Score, by step."""

    history: History
    settings: NodeResourceTopologyMatchArgs
    present: Mapping[str, frozenset[str]]
    demands: Mapping[int, PodDemand]


def script(history: History) -> Script:
    """For arguments that are valid."""
    return Script(
        history=history,
        settings=args.complete(history.args),
        present={node.metadata.name: classes.present_on(node) for node in history.nodes},
        demands={
            place: demand.of(step.pod) for place, step in enumerate(history.steps) if step.op in ("filter", "score")
        },
    )


def play(script: Script, manner: Dialect) -> list[Answer]:
    session = _Session(script, manner)
    return [session.take(step, script.demands.get(place)) for place, step in enumerate(script.history.steps)]


class _Session:
    def __init__(self, script: Script, manner: Dialect) -> None:
        history, settings = script.history, script.settings
        self.cache = dialect.cache_of(settings, history.profile_names, history.nrts, manner)
        self.scoring = scoring.scoring(settings)
        self.has_defects = Habit.DEFECTS in manner.habits
        self.present = script.present
        self.nrts = {nrt.metadata.name: nrt for nrt in history.nrts}
        self.pods = _Informer(args.informer_mode(settings.cache), history.pods)
        self.readings: dict[str, Reading] = {}
        for pod in self.pods.listed():
            self.cache.pod_seen(pod)

    def take(self, step: Step, pod: PodDemand | None) -> Answer:
        if pod is not None:
            return self._of_nodes(step, partial(self._filter if step.op == "filter" else self._score, pod))
        match step.op:
            case "reserve" | "unreserve" | "postbind":
                return self._decided(step)
            case "nrt_update" | "nrt_delete" | "pod_add" | "pod_update" | "pod_delete":
                return self._changed(step)
            case "get_nrt":
                return Answer(_written(self.cache.look_up(step.node)))
        return self._asked_cache(step)

    def _of_nodes(self, step: Step, ask: Callable[[str, Seen], tuple[Any, Any]]) -> Answer:
        said, own, known = dict[str, Any](), dict[str, Any](), dict[str, Lookup]()
        for node in self.present if step.nodes is None else step.nodes:
            known[node] = self.cache.look_up(node)
            said[node], own[node] = ask(node, self._seen(node, known[node]))
        return Answer(said, own, known)

    def _filter(self, pod: PodDemand, node: str, seen: Seen) -> tuple[Any, Any]:
        ours = verdict = filter.decide(pod, self.present.get(node), seen)
        if self.has_defects:
            try:
                verdict = defects.decide(pod, self.present.get(node), seen)
            except defects.Crashed:
                return PANIC, _status(ours.status)
        if verdict.rejects_node:
            self.cache.rejected(node)
        return _status(verdict.status), _status(ours.status)

    def _score(self, pod: PodDemand, node: str, seen: Seen) -> tuple[Any, Any]:
        ours = {"score": scoring.score(pod, seen, self.scoring)}
        if not self.has_defects:
            return ours, ours
        try:
            return {"score": defects.score(pod, seen, self.scoring)}, ours
        except defects.Crashed:
            return PANIC, ours

    def _seen(self, node: str, known: Lookup) -> Seen:
        if known.nrt is None:
            return Seen(known.fresh)
        if node not in self.readings or self.readings[node].report is not known.nrt:
            self.readings[node] = numanodes.read(known.nrt)
        return Seen(known.fresh, self.readings[node])

    def _decided(self, step: Step) -> Answer:
        match step.op:
            case "reserve":
                self.cache.reserve(step.node, step.pod)
                return Answer(RESERVED)
            case "unreserve":
                self.cache.unreserve(step.node, step.pod)
            case "postbind":
                self.cache.post_bind(step.node, step.pod)
        return NOTHING

    def _changed(self, step: Step) -> Answer:
        match step.op:
            case "nrt_update":
                self._put(step.nrt)
            case "nrt_delete":
                if self.nrts.pop(step.node, None) is not None:
                    self.cache.nrt_gone(step.node)
            case "pod_delete":
                self._tell(self.pods.deleted(step.pod))
            case _:
                self._tell(self.pods.put(step.pod))
        return NOTHING

    def _put(self, nrt: NodeResourceTopology) -> None:
        (self.cache.nrt_changed if nrt.metadata.name in self.nrts else self.cache.nrt_added)(nrt)
        self.nrts[nrt.metadata.name] = nrt

    def _tell(self, pod: Pod | None) -> None:
        # The caches treat added, changed and deleted pods alike.
        if pod is not None:
            self.cache.pod_seen(pod)

    def _asked_cache(self, step: Step) -> Answer:
        match step.op, self.cache:
            case "node_rejected", cache:
                cache.rejected(step.node)
            case "node_has_foreign_pods", OverReserve() as over:
                over.has_foreign_pods(step.node)
            case "desynced", OverReserve() as over:
                return Answer(_waiting(over))
            case "resync", OverReserve() as over:
                over.resync(self.nrts, self.pods.listed(), now=0.0)
                return Answer({"generation": over.generation, **_waiting(over)})
        return NOTHING


class _Informer:
    """Pods as the plugin receives them; the scheduler's shared informer omits ended pods."""

    def __init__(self, mode: InformerMode, pods: Iterable[Pod]) -> None:
        self.is_shared = mode is InformerMode.SHARED
        self._pods: dict[PodKey, Pod] = {podgroups.key_of(pod): pod for pod in pods}

    def listed(self) -> list[Pod]:
        return [pod for pod in self._pods.values() if self._shows(pod)]

    def put(self, pod: Pod) -> Pod | None:
        """The object of the event: the new one, if the old or the new one is visible."""
        before = self._pods.get(podgroups.key_of(pod))
        self._pods[podgroups.key_of(pod)] = pod
        return pod if self._shows(pod) or (before is not None and self._shows(before)) else None

    def deleted(self, pod: Pod) -> Pod | None:
        before = self._pods.pop(podgroups.key_of(pod), None)
        return before if before is not None and self._shows(before) else None

    def _shows(self, pod: Pod) -> bool:
        return not self.is_shared or not podgroups.has_ended(pod)


def _status(status: Status) -> dict[str, Any]:
    return {"code": status.code.value, "reasons": list(status.reasons)}


def _waiting(cache: OverReserve) -> dict[str, list[str]]:
    found = cache.desynced()
    return {"maybeOverReserved": list(found.maybe_over_reserved), "configChanged": list(found.settings_changed)}


def _written(found: Lookup) -> dict[str, Any]:
    nrt = None if found.nrt is None else msgspec.to_builtins(found.nrt)
    return {"fresh": found.fresh, "generation": found.generation, "nrt": nrt}
