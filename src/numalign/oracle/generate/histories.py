"""Generates histories for the scheduler plugin: a small cluster and its events, scene by scene.

A history depends only on a seed and a number. The weights follow a scheduler's work (filter, reserve, bind, report,
resync) and favour faults: foreign pods, late and wrong reports, pods that end, settings that change."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from numalign.api.nrt import fingerprint
from numalign.oracle.generate import reports
from numalign.oracle.generate.clusterpods import PHASES, PROFILE, ClusterPod
from numalign.oracle.generate.draws import chance, weighted
from numalign.oracle.generate.reports import Layout
from numalign.oracle.generate.schedulerargs import Setup

Case = dict[str, Any]
Step = dict[str, Any]

FAMILY: Final = "reference"
OTHER_PROFILE: Final = "second-profile"


def draw(seed: int, number: int) -> tuple[str, Case]:
    """The family and the history with this number."""
    rng = Random(f"{FAMILY}/{seed}/{number}")
    return FAMILY, _Scenes(rng).history(f"ref-{seed}-{number}")


class _Scenes:
    """A cluster while its history is generated: the API server's objects, and the steps so far."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.setup = Setup(rng)
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
        layout.settings = reports.settings(self.rng)
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
            return reports.report(rng, layout, {})
        counted = [((pod.namespace, pod.name), pod.is_exclusive) for pod in self._counting(layout.name)]
        pods = fingerprint.included(counted if style == "right" else counted[1:], method)
        text = rng.choice(("", "pfp0", "pfp0v002ef46db3751d8e999")) if style == "malformed" else fingerprint.of(pods)
        return reports.report(rng, layout, reports.signed(rng, text, method))

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
