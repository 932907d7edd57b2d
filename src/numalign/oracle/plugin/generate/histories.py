"""Generates and shrinks histories for the scheduler plugin: its arguments, a small cluster, and its events.

`sources` passes `draw` and `smaller` to campaigns. A history depends only on a seed and a number. The weights follow a
scheduler's work (filter, reserve, bind, report, resync) and favour faults: foreign pods, late and wrong reports, pods
that end, settings that change. Every step contains its own objects, so a history with parts removed is still valid."""

from collections.abc import Iterator
from copy import deepcopy
from random import Random
from typing import Any, Final

from numalign.api.nrt import fingerprint
from numalign.oracle.harness import shrink
from numalign.oracle.harness.divergence import Case
from numalign.oracle.harness.draws import chance, weighted
from numalign.oracle.plugin.generate import clusters
from numalign.oracle.plugin.generate.clusters import PHASES, PROFILE, ClusterPod, Layout

STRATEGIES = ("LeastAllocated", "MostAllocated", "BalancedAllocation", "LeastNUMANodes")
CACHE_SETTINGS = {
    "foreignPodsDetect": ("All", "None", "OnlyExclusiveResources"),
    "resyncMethod": ("Autodetect", "All", "OnlyExclusiveResources"),
    "resyncScope": ("All", "OnlyResources"),
    "informerMode": ("Dedicated", "Shared"),
}
SCORED = ("cpu", "memory", "hugepages-2Mi", "vendor.com/nic", "vendor.com/gpu")


class PluginSetup:
    """The arguments, and the cache that they select."""

    def __init__(self, rng: Random) -> None:
        self.cache = weighted(rng, {"over": 6.0, "discard": 2.0, "passthrough": 2.0})
        self.args: dict[str, object] = {**_period(rng, self.cache), **_settings(rng), **_strategy(rng)}
        if chance(rng, 0.01):
            # The plugin rejects these arguments at start (scheduler plugin spec 2).
            self.args |= rng.choice(
                ({"preemptionMode": "Enabled"}, {"unheardOf": 1}, {"cacheResyncPeriodSeconds": "5"})
            )

    @property
    def is_shared(self) -> bool:
        cache = self.args.get("cache")
        return isinstance(cache, dict) and cache.get("informerMode", "Dedicated") != "Dedicated"


def _period(rng: Random, cache: str) -> dict[str, object]:
    if cache == "discard":
        return {"discardReservedNodes": True, **({"cacheResyncPeriodSeconds": 5} if chance(rng, 0.3) else {})}
    if cache == "over":
        return {"cacheResyncPeriodSeconds": rng.choice((1, 5, 5, 60))}
    period = rng.choice((None, 0, -3))
    return {} if period is None else {"cacheResyncPeriodSeconds": period}


def _settings(rng: Random) -> dict[str, object]:
    """Any of the cache's settings. An unknown value selects another one (scheduler plugin spec 2.2)."""
    if chance(rng, 0.25):
        return {}
    chosen = {name: rng.choice(values) for name, values in CACHE_SETTINGS.items() if chance(rng, 0.6)}
    if chosen and chance(rng, 0.04):
        chosen[rng.choice(list(chosen))] = "Whatever"
    return {"cache": chosen}


def _strategy(rng: Random) -> dict[str, object]:
    if chance(rng, 0.15):
        return {}
    kind = "Fastest" if chance(rng, 0.01) else rng.choice(STRATEGIES)
    if chance(rng, 0.4):
        return {"scoringStrategy": {"type": kind}}
    names = rng.choices(SCORED, k=rng.randint(1, 4))
    resources = [{"name": name, "weight": rng.choice((1, 1, 2, 3, 10, 0, -1))} for name in names]
    return {"scoringStrategy": {"type": kind, "resources": resources}}


Step = dict[str, Any]

FAMILY: Final = "reference"
OTHER_PROFILE: Final = "second-profile"


def draw(seed: int, number: int) -> tuple[str, Case]:
    """The family and the history with this number."""
    rng = Random(f"{FAMILY}/{seed}/{number}")
    return FAMILY, _HistoryBuilder(rng).history(f"ref-{seed}-{number}")


class _HistoryBuilder:
    """A cluster while its history is generated: the API server's objects, and the steps so far."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.setup = PluginSetup(rng)
        self.layouts = [Layout(rng, f"n{n}") for n in range(weighted(rng, {1: 5, 2: 4, 3: 1, 4: 0.5}))]
        self.bound: dict[str, tuple[ClusterPod, str, str]] = {}
        """Pod, node and phase, by pod name."""
        self.pods_made = 0
        self.steps: list[Step] = []

    def history(self, name: str) -> Case:
        rng = self.rng
        made: Case = {"id": name, "args": self.setup.args}
        if chance(rng, 0.1):
            made["profileNames"] = [PROFILE, OTHER_PROFILE]
        made["nodes"] = [layout.node(rng) for layout in self.layouts]
        existing = [self._bind(self._pod(), rng.choice(self.layouts).name) for _ in range(rng.choice((0, 0, 0, 1, 2)))]
        made["nrts"] = [self._report(layout) for layout in self.layouts if not chance(rng, 0.07)]
        if existing:
            made["pods"] = existing
        for _ in range(rng.randint(3, 8)):
            self._scene()
        return {**made, "steps": self.steps}

    def _scene(self) -> None:
        """Only OverReserve caches reports and marks, so the other caches get more plain questions."""
        over = self.setup.cache == "over"
        scenes = {
            self._scheduling: 5.0,
            self._asking: 2.0,
            self._reporting: 4.0 if over else 1.0,
            self._foreign: 1.5 if over else 0.3,
            self._ending: 1.0,
            self._changing_settings: 0.7 if over else 0.3,
            self._odd: 0.5,
        }
        weighted(self.rng, scenes)()

    def _scheduling(self) -> None:
        """A pod passes through the plugin, completely or in part."""
        pod, node = self._pod(), self._node()
        given = pod.object()
        self._step("filter", pod=given)
        if chance(self.rng, 0.5):
            self._step("score", pod=given)
        self._step("reserve", pod=given, node=node)
        fate = weighted(self.rng, {"bound": 6.0, "unreserved": 2.0, "in between": 2.0})
        if fate == "unreserved":
            self._step("unreserve", pod=given, node=node)
        if fate == "bound":
            self._step("pod_add", pod=self._bind(pod, node))
            self._step("postbind", pod=given, node=node)
        if chance(self.rng, 0.4):
            self._step("get_nrt", node=node)

    def _asking(self) -> None:
        given = self._pod().object()
        some = {"nodes": [self._node(), "n9"]} if chance(self.rng, 0.08) else {}
        self._step("filter", pod=given, **some)
        if not some:
            self._step("score", pod=given)

    def _reporting(self) -> None:
        """Most useful after a refusal: a resync only checks marked nodes."""
        layout = self.rng.choice(self.layouts)
        if chance(self.rng, 0.5):
            self._step("filter", pod=self._pod(greedy=True).object())
        self._step("nrt_update", nrt=self._report(layout))
        self._resync(layout.name)

    def _foreign(self) -> None:
        node = self._node()
        scheduler = self.rng.choice(("default-scheduler", "default-scheduler", OTHER_PROFILE, ""))
        self._step("pod_add", pod=self._bind(self._pod(), node, scheduler))
        self._step("desynced")
        if chance(self.rng, 0.5):
            self._asking()

    def _ending(self) -> None:
        """A bound pod changes its phase or is deleted."""
        if not self.bound:
            return self._asking()
        pod, node, _ = self.bound[self.rng.choice(list(self.bound))]
        if chance(self.rng, 0.5):
            return self._step("pod_update", pod=self._bind(pod, node))
        del self.bound[pod.name]
        return self._step("pod_delete", pod=pod.object(node=node))

    def _changing_settings(self) -> None:
        layout = self.rng.choice(self.layouts)
        layout.settings = clusters.settings(self.rng)
        self._step("nrt_update", nrt=self._report(layout))
        self._step("desynced")
        self._resync(layout.name)

    def _odd(self) -> None:
        op = self.rng.choice(("nrt_delete", "node_rejected", "node_has_foreign_pods", "get_nrt"))
        node = "n9" if chance(self.rng, 0.15) else self._node()
        self._step(op, node=node)
        self._step("desynced")

    def _resync(self, node: str) -> None:
        if self.setup.cache == "over" or chance(self.rng, 0.1):
            self._step("resync")
        if chance(self.rng, 0.5):
            self._step("get_nrt", node=node)

    def _report(self, layout: Layout) -> Step:
        """A report with a fingerprint of the current pods, of others, or without one."""
        rng, method = self.rng, fingerprint.Method.EXCLUSIVE if chance(self.rng, 0.3) else fingerprint.Method.ALL
        style = weighted(rng, {"right": 7.0, "late": 1.0, "malformed": 0.3, "none": 1.0})
        if style == "none":
            return clusters.report(rng, layout, {})
        counted = [((pod.namespace, pod.name), pod.is_exclusive) for pod in self._counting(layout.name)]
        pods = fingerprint.included(counted if style == "right" else counted[1:], method)
        text = rng.choice(("", "pfp0", "pfp0v002ef46db3751d8e999")) if style == "malformed" else fingerprint.of(pods)
        return clusters.report(rng, layout, clusters.signed(rng, text, method))

    def _counting(self, node: str) -> list[ClusterPod]:
        """The pods that the cache expects in the node's fingerprint (scheduler plugin spec 13.9)."""
        on_node = [(pod, phase) for pod, where, phase in self.bound.values() if where == node]
        if self.setup.is_shared:
            return [pod for pod, phase in on_node if phase == "Running"]
        return [pod for pod, phase in on_node if phase != "Pending"]

    def _pod(self, *, greedy: bool = False) -> ClusterPod:
        self.pods_made += 1
        return ClusterPod(self.rng, self.pods_made, self.rng.choice(self.layouts), greedy=greedy)

    def _bind(self, pod: ClusterPod, node: str, scheduler: str = PROFILE) -> Step:
        phase = weighted(self.rng, PHASES)
        self.bound[pod.name] = (pod, node, phase)
        return pod.object(node=node, phase=phase, scheduler=scheduler)

    def _node(self) -> str:
        return self.rng.choice(self.layouts).name

    def _step(self, op: str, **fields: object) -> None:
        self.steps.append({"op": op, **fields})


LISTS = ("steps", "nrts", "pods", "nodes", "zones", "initContainers", "containers", "attributes", "costs")
ENTRIES = ("args", "cache", "scoringStrategy")


def smaller(history: Case) -> Iterator[Case]:
    """Smaller histories, larger cuts first."""
    for cut in sorted(_cuts(history), key=lambda cut: len(cut[0])):
        candidate = deepcopy(history)
        _apply(candidate, *cut)
        yield candidate


def _cuts(history: Case) -> Iterator[tuple[shrink.Place, Any]]:
    """Places, each with the items or the key to remove there."""
    for place, thing in shrink.objects(history):
        for key, child in thing.items():
            if key in LISTS and isinstance(child, list):
                fewest = 1 if key in ("containers", "zones") else 0
                blocks = (each for each in shrink.blocks(len(child)) if len(child) - (each[1] - each[0]) >= fewest)
                yield from (((*place, key), slice(*each)) for each in blocks)
            if key in ENTRIES and isinstance(child, dict):
                yield from (((*place, key), name) for name in child)
            if key == "requests" and isinstance(child, dict):
                yield from ((place, name) for name in child)


def _apply(history: Case, place: shrink.Place, gone: Any) -> None:
    found = shrink.at(history, place)
    if isinstance(gone, str) and "requests" in found:
        for amounts in found.values():
            amounts.pop(gone, None)
    else:
        del found[gone]
