"""Replays recorded cache sessions on numalign's caches, step by step.

`caches` uses it. Two dictionaries serve as API server. A cache without resync receives every change; OverReserve
receives only what a step passes to it and what a round reads. `play` can leave out repairs, to show the plugin's result
and the effect of each repair."""

from collections.abc import Mapping
from typing import Any

import msgspec

from numalign.api.nrt.placementcodec import ContainerRef
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects.pod import Pod
from numalign.oracle.plugin.suites import objects
from numalign.placement.reference.caches import foreignpods, podgroups, repairs, selection
from numalign.placement.reference.caches.cache import Cache
from numalign.placement.reference.caches.discardreserved import DiscardReserved
from numalign.placement.reference.caches.ledger import CacheEntry
from numalign.placement.reference.caches.overreserve import OverReserve
from numalign.placement.reference.caches.passthrough import Passthrough
from numalign.placement.reference.caches.podgroups import PodKey, Relevance
from numalign.placement.reference.caches.records import Record
from numalign.placement.reference.caches.repairs import Repair
from numalign.placement.reference.caches.resync import Refresh, Round
from numalign.placement.reference.caches.rules import Rules
from numalign.placement.referenceargs import CacheArgs, InformerMode, NodeResourceTopologyMatchArgs

Step = Mapping[str, Any]


def play(given: Mapping[str, Any], applied: frozenset[Repair] = repairs.ALL) -> list[object]:
    """The answers of the session, step by step; None where a step has none."""
    session = _session(given, applied)
    return [session.take(step) for step in given["steps"]]


def relevance(name: str) -> Relevance:
    """The relevance of an informer mode, or that of the recorded unit tests, in which every pod is relevant."""
    return (lambda _: True) if name == "Always" else podgroups.relevance(InformerMode(name))


def cache_of(given: Mapping[str, Any], nrts: list[NodeResourceTopology], rules: Rules) -> Cache:
    match given["cacheType"]:
        case "Passthrough":
            return Passthrough(nrts)
        case "DiscardReserved":
            return DiscardReserved(nrts)
    return OverReserve(rules, nrts)


def cache_args(raw: Mapping[str, Any] | None) -> CacheArgs | None:
    """Recordings spell fields as the configuration does, or as the plugin's structs."""
    return None if raw is None else msgspec.convert({name[0].lower() + name[1:]: raw[name] for name in raw}, CacheArgs)


def look_up(cache: Cache, node: str) -> dict[str, object]:
    found = cache.look_up(node)
    nrt = None if found.nrt is None else msgspec.to_builtins(found.nrt)
    return {"fresh": found.fresh, "generation": found.generation, "nrt": nrt}


class CacheSession:
    """A session with a cache that receives every change and has no rounds."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache

    def take(self, step: Step) -> object:
        match step:
            case {"op": "getNRT", "node": node}:
                return look_up(self.cache, node)
            case {"op": "placement", "node": node}:
                placement = self.cache.placement(node)
                return {"containers": None if placement is None else len(placement)}
            case {"op": "affinity", "node": node}:
                ref = ContainerRef(step["namespace"], step["name"], step["container"])
                return {"numaNode": (self.cache.placement(node) or {}).get(ref)}
            case {"op": "apiPutNRT", "nrt": nrt}:
                self.cache.nrt_changed(objects.report(nrt))
            case {"op": "apiDeleteNRT"}:
                self.cache.nrt_gone(_node_of(step))
            case {"op": "nodeRejected", "node": node}:
                self.cache.rejected(node)
            case {"op": "reserve", "node": node, "pod": pod}:
                self.cache.reserve(node, objects.pod(pod))
            case {"op": "unreserve", "node": node, "pod": pod}:
                self.cache.unreserve(node, objects.pod(pod))
            case {"op": "postBind", "node": node, "pod": pod}:
                self.cache.post_bind(node, objects.pod(pod))
        return None


class ResyncSession(CacheSession):
    """A session with an OverReserve cache and its API server."""

    def __init__(self, cache: OverReserve, nrts: list[NodeResourceTopology], pods: list[Pod]) -> None:
        super().__init__(cache)
        self.over = cache
        self.nrts = {nrt.metadata.name: nrt for nrt in nrts}
        self.pods: dict[PodKey, Pod] = {podgroups.key_of(pod): pod for pod in pods}
        self.prepared = Round(0)

    def take(self, step: Step) -> object:
        match step["op"]:
            case "apiPutNRT" | "apiDeleteNRT" | "podAdd" | "podRemove":
                return self._api_server(step)
            case "podEvent" | "watchEvent" | "nodeHasForeignPods" | "desynced" | "cacheSetNRT" | "cacheSetNRTWithPods":
                return self._cache_event(step)
            case "resync" | "resyncPrepare" | "resyncCommit" | "flush":
                return self._round(step)
        return super().take(step)

    def _api_server(self, step: Step) -> object:
        match step:
            case {"op": "apiPutNRT", "nrt": raw}:
                nrt = objects.report(raw)
                self.nrts[nrt.metadata.name] = nrt
            case {"op": "apiDeleteNRT"}:
                self.nrts.pop(_node_of(step), None)
            case {"op": "podAdd", "pod": raw}:
                pod = objects.pod(raw)
                self.pods[podgroups.key_of(pod)] = pod
            case {"op": "podRemove"}:
                raw = step.get("pod") or {"metadata": {key: step.get(key, "") for key in ("namespace", "name")}}
                self.pods.pop(podgroups.key_of(objects.pod(raw)), None)
        return None

    def _cache_event(self, step: Step) -> object:
        match step:
            case {"op": "podEvent", "pod": raw}:
                return {"foreign": self._pod_event(objects.pod(raw))}
            case {"op": "watchEvent", "eventType": kind, "nrt": nrt}:
                return {"marked": self._watch_event(kind, objects.report(nrt))}
            case {"op": "desynced"}:
                waiting = self.over.desynced()
                return {"maybeOverReserved": waiting.maybe_over_reserved, "configChanged": waiting.settings_changed}
            case {"op": "nodeHasForeignPods", "node": node}:
                self.over.has_foreign_pods(node)
            case {"nrt": nrt}:
                self._set(objects.report(nrt), step.get("podData") or ())
        return None

    def _round(self, step: Step) -> object:
        match step:
            case {"op": "resyncPrepare"}:
                self.prepared = self.over.prepare(self.nrts, self.pods.values())
                return {"updates": [refresh.nrt.metadata.name for refresh in self.prepared.refreshes]}
            case {"op": "resyncCommit"}:
                self.over.commit(self.prepared)
            case {"op": "flush", "nrts": nrts}:
                refreshes = tuple(Refresh(objects.report(nrt)) for nrt in nrts)
                self.over.commit(Round(self.over.moment, refreshes))
            case _:
                self.over.resync(self.nrts, self.pods.values(), now=0.0)
        return {"generation": self.over.generation}

    def _set(self, nrt: NodeResourceTopology, pods: Any) -> None:
        # The recorded step bypasses the names that the cache keeps of each report.
        records = (Record(each["namespace"], each["name"], tuple(each["pinnedContainers"] or ())) for each in pods)
        self.over.ledger.put(CacheEntry(nrt, self.over.ledger.listed(nrt.metadata.name), tuple(records)))

    def _pod_event(self, pod: Pod) -> bool:
        self.over.pod_seen(pod)
        listed, rules = self.over.ledger.listed(pod.spec.node_name), self.over.rules
        return foreignpods.is_foreign(pod, listed, rules.profiles, rules.detect)

    def _watch_event(self, kind: str, nrt: NodeResourceTopology) -> bool:
        before = self.over.marks.settings.get(nrt.metadata.name)
        match kind:
            case "ADDED":
                self.over.nrt_added(nrt)
            case "MODIFIED":
                self.over.nrt_changed(nrt)
            case "DELETED":
                self.over.nrt_gone(nrt.metadata.name)
        return self.over.marks.settings.get(nrt.metadata.name) not in (None, before)


def _session(given: Mapping[str, Any], applied: frozenset[Repair]) -> CacheSession:
    settings = NodeResourceTopologyMatchArgs(cache=cache_args(given["cache"]), preemption_mode=given["preemptionMode"])
    rules = selection.rules(settings, given["profileNames"] or ())
    rules = msgspec.structs.replace(rules, is_relevant=relevance(given["podRelevance"]), repairs=applied)
    nrts = list(map(objects.report, given["initialNRTs"] or ()))
    built = cache_of(given, nrts, rules)
    if isinstance(built, OverReserve):
        return ResyncSession(built, nrts, list(map(objects.pod, given["initialPods"] or ())))
    return CacheSession(built)


def _node_of(step: Step) -> str:
    return str(step.get("node") or step.get("name") or step["nrt"]["metadata"]["name"])
