"""Replays a history on numalign's reference flavour, as v0.34.7 or as the product.

`judge` compares the answers. `play` handles the steps as the oracle program does with the real plugin: two dictionaries
serve as API server, informers notify the cache, Filter and Score use the cached reports. A `Dialect` says which
behaviours of v0.34.7 a replay keeps and which cache repairs it applies. These behaviours are not in the product: the
later upstream tree, which the product follows, has none of them (docs/develop/oracle-reference.md)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from enum import StrEnum
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Struct, structs

from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects.pod import Container, Pod
from numalign.oracle.plugin import defects
from numalign.oracle.plugin.history import History, HistoryStep
from numalign.placement import referenceargs
from numalign.placement.reference import classes, demand, filter, numanodes, scoring
from numalign.placement.reference.caches import podgroups, repairs, selection
from numalign.placement.reference.caches.cache import Cache, Lookup, Reports
from numalign.placement.reference.caches.ledger import ReservationLedger
from numalign.placement.reference.caches.overreserve import OverReserve
from numalign.placement.reference.caches.podgroups import PodKey
from numalign.placement.reference.caches.repairs import Repair
from numalign.placement.reference.caches.rules import Rules
from numalign.placement.reference.demand import PodDemand
from numalign.placement.reference.filter import Seen
from numalign.placement.reference.numanodes import Reading
from numalign.placement.reference.status import Status
from numalign.placement.referenceargs import InformerMode, NodeResourceTopologyMatchArgs


class OldBehaviour(StrEnum):
    """The listed behaviours of v0.34.7 that a history can show, and the defects of Filter and Score."""

    EVERY_DEVICE = "every-device"
    """Every device is exclusive, not only those that the node's report lists (3)."""
    INIT_CONTAINERS = "init-containers"
    """Ordinary init containers count for exclusive resources (4)."""
    RESERVE_UNMARKS = "reserve-unmarks"
    """Reserve clears the mark of a refused node (5)."""
    OLD_CLASSES = "old-classes"
    """The QoS class is that of Kubernetes 1.34 (7)."""
    DEFECTS = "defects"
    """Filter and Score panic and return invalid scores, as listed in docs/compatibility/plugin.md."""


class Dialect(Struct, frozen=True):
    behaviours: frozenset[OldBehaviour]
    repairs: frozenset[Repair]


V0_34_7: Final = Dialect(frozenset(OldBehaviour), repairs.NONE)
OURS: Final = Dialect(frozenset(), repairs.ALL)


def cache_of(
    settings: NodeResourceTopologyMatchArgs,
    profiles: Collection[str],
    nrts: Iterable[NodeResourceTopology],
    dialect: Dialect,
) -> Cache:
    built = selection.build(settings, profiles, nrts)
    if dialect == OURS or not isinstance(built, OverReserve):
        return built
    return OldCache(structs.replace(built.rules, repairs=dialect.repairs), nrts, dialect.behaviours)


class EveryName(frozenset[str]):
    def __contains__(self, name: object) -> bool:
        return True


class EveryDeviceListed(ReservationLedger):
    def listed(self, node: str) -> frozenset[str]:
        return EveryName()


class OldCache(OverReserve):
    """The over-reserve cache with the behaviours of v0.34.7."""

    def __init__(self, rules: Rules, nrts: Iterable[NodeResourceTopology], behaviours: frozenset[OldBehaviour]) -> None:
        super().__init__(rules, nrts)
        self.behaviours = behaviours
        if OldBehaviour.EVERY_DEVICE in behaviours:
            self.ledger = EveryDeviceListed(nrts)

    def pod_seen(self, pod: Pod) -> None:
        super().pod_seen(self._as_counted(pod))

    def reserve(self, node: str, pod: Pod) -> None:
        super().reserve(node, pod)
        if OldBehaviour.RESERVE_UNMARKS in self.behaviours:
            self.marks.rejected.pop(node, None)

    def resync(self, nrts: Reports, pods: Iterable[Pod], now: float) -> tuple[str, ...]:
        return super().resync(nrts, map(self._as_counted, pods), now)

    def _as_counted(self, pod: Pod) -> Pod:
        """Sidecars count in either tree, so a pod whose init containers are all sidecars has all of them counted."""
        if OldBehaviour.INIT_CONTAINERS not in self.behaviours or not pod.spec.init_containers:
            return pod
        counted = tuple(map(_as_sidecar, pod.spec.init_containers))
        return structs.replace(pod, spec=structs.replace(pod.spec, init_containers=counted))


def _as_sidecar(container: Container) -> Container:
    return structs.replace(container, restart_policy="Always")


RESERVED: Final = {"code": "Success", "reasons": [""]}
"""The plugin's Reserve always returns this."""
PANIC: Final = {"panic": ""}


class StepAnswer(Struct, frozen=True):
    """The answer to one step. For Filter and Score it includes the product's answer and the report used."""

    said: Any = None
    own: Mapping[str, Any] = {}
    known: Mapping[str, Lookup] = {}


NOTHING: Final = StepAnswer()


class PreparedHistory(Struct, frozen=True):
    """A history with what every replay needs; `demands` has the pods of Filter and Score, by step."""

    history: History
    settings: NodeResourceTopologyMatchArgs
    present: Mapping[str, frozenset[str]]
    demands: Mapping[int, PodDemand]


def script(history: History) -> PreparedHistory:
    """Prepares a history whose arguments are valid."""
    return PreparedHistory(
        history=history,
        settings=referenceargs.complete(history.args),
        present={node.metadata.name: classes.present_on(node) for node in history.nodes},
        demands={
            place: demand.of(step.pod) for place, step in enumerate(history.steps) if step.op in ("filter", "score")
        },
    )


def play(script: PreparedHistory, dialect: Dialect) -> list[StepAnswer]:
    session = _Session(script, dialect)
    return [session.take(step, script.demands.get(place)) for place, step in enumerate(script.history.steps)]


class _Session:
    def __init__(self, script: PreparedHistory, dialect: Dialect) -> None:
        history, settings = script.history, script.settings
        self.cache = cache_of(settings, history.profile_names, history.nrts, dialect)
        self.scoring = scoring.scoring(settings)
        self.has_defects = OldBehaviour.DEFECTS in dialect.behaviours
        self.present = script.present
        self.nrts = {nrt.metadata.name: nrt for nrt in history.nrts}
        self.pods = _Informer(referenceargs.informer_mode(settings.cache), history.pods)
        self.readings: dict[str, Reading] = {}
        for pod in self.pods.listed():
            self.cache.pod_seen(pod)

    def take(self, step: HistoryStep, pod: PodDemand | None) -> StepAnswer:
        if pod is not None:
            return self._of_nodes(step, partial(self._filter if step.op == "filter" else self._score, pod))
        match step.op:
            case "reserve" | "unreserve" | "postbind":
                return self._decided(step)
            case "nrt_update" | "nrt_delete" | "pod_add" | "pod_update" | "pod_delete":
                return self._changed(step)
            case "get_nrt":
                return StepAnswer(_written(self.cache.look_up(step.node)))
        return self._asked_cache(step)

    def _of_nodes(self, step: HistoryStep, ask: Callable[[str, Seen], tuple[Any, Any]]) -> StepAnswer:
        said, own, known = dict[str, Any](), dict[str, Any](), dict[str, Lookup]()
        for node in self.present if step.nodes is None else step.nodes:
            known[node] = self.cache.look_up(node)
            said[node], own[node] = ask(node, self._seen(node, known[node]))
        return StepAnswer(said, own, known)

    def _filter(self, pod: PodDemand, node: str, seen: Seen) -> tuple[Any, Any]:
        ours = verdict = filter.decide(pod, self.present.get(node), seen)
        if self.has_defects:
            try:
                verdict = defects.decide(pod, self.present.get(node), seen)
            except defects.PluginPanic:
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
        except defects.PluginPanic:
            return PANIC, ours

    def _seen(self, node: str, known: Lookup) -> Seen:
        if known.nrt is None:
            return Seen(known.fresh)
        if node not in self.readings or self.readings[node].report is not known.nrt:
            self.readings[node] = numanodes.read(known.nrt)
        return Seen(known.fresh, self.readings[node])

    def _decided(self, step: HistoryStep) -> StepAnswer:
        match step.op:
            case "reserve":
                self.cache.reserve(step.node, step.pod)
                return StepAnswer(RESERVED)
            case "unreserve":
                self.cache.unreserve(step.node, step.pod)
            case "postbind":
                self.cache.post_bind(step.node, step.pod)
        return NOTHING

    def _changed(self, step: HistoryStep) -> StepAnswer:
        match step.op:
            case "nrt_update":
                self._put(step.nrt)
            case "nrt_delete":
                if self.nrts.pop(step.node, None) is not None:
                    self.cache.nrt_gone(step.node)
            case "pod_delete":
                self._notify(self.pods.deleted(step.pod))
            case _:
                self._notify(self.pods.put(step.pod))
        return NOTHING

    def _put(self, nrt: NodeResourceTopology) -> None:
        (self.cache.nrt_changed if nrt.metadata.name in self.nrts else self.cache.nrt_added)(nrt)
        self.nrts[nrt.metadata.name] = nrt

    def _notify(self, pod: Pod | None) -> None:
        # The caches treat added, changed and deleted pods alike.
        if pod is not None:
            self.cache.pod_seen(pod)

    def _asked_cache(self, step: HistoryStep) -> StepAnswer:
        match step.op, self.cache:
            case "node_rejected", cache:
                cache.rejected(step.node)
            case "node_has_foreign_pods", OverReserve() as over:
                over.has_foreign_pods(step.node)
            case "desynced", OverReserve() as over:
                return StepAnswer(_waiting(over))
            case "resync", OverReserve() as over:
                over.resync(self.nrts, self.pods.listed(), now=0.0)
                return StepAnswer({"generation": over.generation, **_waiting(over)})
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
