"""What is written down of a campaign: steps of pods, offers of nodes, and whether reports keep up with kubelets."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from msgspec import structs

from numalign.agent.sources.checkpoints import DeviceCheckpoint
from numalign.api.decode import decode
from numalign.api.nrt import normalise
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod
from numalign.kube.client import Client
from numalign.kube.watch.store import Change
from numalign.kubelet import admission
from numalign.kubelet.machine import presets
from numalign.kubelet.report import report
from numalign.kubelet.state import KubeletState
from numalign.lab import spec
from numalign.lab.campaign.history import History, Holding
from numalign.lab.campaign.watch import Checkpoints, Observer
from numalign.lab.lab import Lab

NODE = spec.node("n", presets.machine("gpu-8"))
AMOUNTS = {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "1"}
SPEC = {"containers": [{"name": "main", "resources": {"requests": AMOUNTS, "limits": AMOUNTS}}]}


def pod(node: str = "", *, predicted: str = "", **status: Any) -> Pod:
    notes = {"numalign.io/placement": predicted} if predicted else {}
    meta = {"name": "a", "uid": "u", "namespace": "default", "annotations": notes}
    return decode.decode(Pod, {"metadata": meta, "spec": SPEC | {"nodeName": node}, "status": status})


def watching() -> Observer:
    lab = SimpleNamespace(nodes={"n": SimpleNamespace(spec=NODE)})
    return Observer(cast(Lab, lab), cast(Client, SimpleNamespace(sender=None)), History())


def told(watcher: Observer) -> list[str]:
    return [line.what for line in watcher.history.lines]


def test_every_step_of_a_pod_is_a_line() -> None:
    watcher, before = watching(), None
    refused = [{"type": "PodScheduled", "status": "False", "message": "no room"}]
    ways = [pod(), pod(conditions=refused), pod("n"), pod("n", phase="Running"), pod("n", phase="Succeeded")]
    for now in ways:
        watcher._pod(Change(before, now))
        before = now
    watcher._pod(Change(before, None))
    assert told(watcher) == ["created", "waits", "bound", "started", "ended", "gone"]
    assert watcher.history.lines[0].devices == {"nvidia.com/gpu": 1}
    assert watcher.pods == {}


def test_a_pod_that_is_seen_late_has_all_its_steps() -> None:
    watcher = watching()
    watcher._pod(Change(None, pod("n", predicted="v1;main=0|1", phase="Failed", reason="OutOfcpu", message="full")))
    created, bound, ended = watcher.history.lines
    assert (created.what, bound.predicted, bound.loose) == ("created", {"main": ((0,), (1,))}, False)
    assert (ended.phase, ended.why, ended.words) == ("Failed", "OutOfcpu", "full")


def test_a_node_is_heard_when_it_offers_other_devices() -> None:
    watcher = watching()
    for count in ("8", "8", "0"):
        node = decode.decode(Node, {"metadata": {"name": "n"}, "status": {"allocatable": {"x/y": count, "cpu": "1"}}})
        watcher._node(Change(None, node))
    assert [line.devices for line in watcher.history.lines] == [{"x/y": 8}, {"x/y": 0}]


def test_a_preemption_has_lines_of_both_pods() -> None:
    watcher = watching()
    watcher._pod(Change(None, pod()))
    watcher._pod(Change(pod(), pod(nominatedNodeName="n")))
    target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    watcher._pod(Change(pod("n"), pod("n", conditions=[target])))
    _, nominated, disrupted = watcher.history.lines
    assert (nominated.what, nominated.node) == ("nominated", "n")
    assert (disrupted.what, disrupted.why) == ("disrupted", "PreemptionByScheduler")


def admitted(one: Pod) -> KubeletState:
    state, outcome = admission.admit(NODE.modelled, NODE.modelled.initial(), one)
    assert outcome.admitted
    return state


def checkpoints_of(state: KubeletState) -> Checkpoints:
    assert state.cpu is not None
    return Checkpoints((), state.cpu, state.memory, DeviceCheckpoint(state.devices, {}, {}))


def test_a_report_is_behind_until_it_tells_what_the_kubelet_wrote_down() -> None:
    watcher, one = watching(), pod("n", phase="Running")
    state = admitted(one)
    watcher.pods["u"], watcher.checkpoints["n"] = one, checkpoints_of(state)
    watcher._compare("n")
    watcher._report(Change(None, normalise.encode(report.of("n", NODE.modelled, state))))
    watcher._compare("n")
    assert [what for what in told(watcher) if what in ("behind", "level")] == ["behind", "level"]


def test_a_report_that_is_deleted_is_behind() -> None:
    watcher, one = watching(), pod("n", phase="Running")
    state = admitted(one)
    watcher.pods["u"], watcher.checkpoints["n"] = one, checkpoints_of(state)
    published = normalise.encode(report.of("n", NODE.modelled, state))
    watcher._report(Change(None, published))
    watcher._compare("n")
    watcher._report(Change(published, None))
    watcher._compare("n")
    assert told(watcher)[-2:] == ["report-deleted", "behind"]


def test_of_a_node_that_has_left_nothing_is_expected() -> None:
    watcher, one = watching(), pod("n", phase="Running")
    watcher.pods["u"], watcher.checkpoints["n"] = one, checkpoints_of(admitted(one))
    watcher._note("n", {"u": {"main": Holding((0,), (0,))}})
    watcher._compare("n")
    watcher.forget("n")
    assert told(watcher) == ["holds", "behind", "freed", "level"]
    assert watcher.checkpoints == {}


def test_a_pod_on_its_way_out_does_not_put_a_report_behind() -> None:
    watcher, one = watching(), pod("n", phase="Running")
    leaving = structs.replace(one, metadata=structs.replace(one.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
    watcher.pods["u"], watcher.checkpoints["n"] = leaving, checkpoints_of(admitted(one))
    watcher._compare("n")
    assert told(watcher) == []


def test_what_a_pod_held_stays_written_down_and_its_end_is_too() -> None:
    watcher = watching()
    watcher._note("n", {"u": {"main": Holding((0,), (0,))}})
    watcher._note("n", {"u": {"main": Holding(memory=(0,))}})
    watcher._note("n", {})
    assert told(watcher) == ["holds", "cpus-freed", "freed"]
