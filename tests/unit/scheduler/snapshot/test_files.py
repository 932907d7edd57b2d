"""Snapshots as files: dumps and kubectl's output are written and read again, and contain no secrets."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from numalign.api.errors import BadObject
from numalign.kube import dumps
from numalign.kube.resources import NODES, PODS, TOPOLOGIES
from numalign.scheduler import main, settings
from numalign.scheduler.record import entries
from numalign.scheduler.snapshot import files, snapshot
from numalign.scheduler.snapshot.snapshot import AssumedPod, NominatedPod, SchedulerState, Snapshot
from tests.unit.scheduler import servers, waitingpods

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": {}}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}
REPORT = {"apiVersion": "topology.node.k8s.io/v1alpha1", "kind": "NodeResourceTopology", "metadata": {"name": "a"}}
OTHER = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "b"}}
TUNED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podMaxBackoffSeconds: 30
profiles:
- schedulerName: one
  pluginConfig:
  - {name: Numalign, args: {seed: 7, trustBindOrder: true}}
  - {name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 3}]}}}
  plugins: {score: {disabled: [{name: ImageLocality}]}}
- schedulerName: two
  percentageOfNodesToScore: 40
"""


def listed(*items: dict[str, Any], kind: str = "List") -> bytes:
    return json.dumps({"apiVersion": "v1", "kind": kind, "items": items}).encode()


def taken() -> Snapshot:
    objects = {
        "nodes": (servers.node("a"), servers.node("b")),
        "noderesourcetopologies": (servers.reported("a"),),
        "pods": (servers.on(servers.trainer("p"), "a"), servers.trainer("q")),
    }
    state = SchedulerState(
        rows=("b", "a"),
        start=3,
        assumed=(AssumedPod("uid-q", "b"),),
        nominated=(NominatedPod("uid-q", "b", ("uid-p",)),),
    )
    return Snapshot(objects=objects, state=state, wall="2026-11-16T00:00:00Z", now=12.5, missing=("services: no",))


@pytest.mark.parametrize("pack", [bytes, files.packed], ids=["plain", "packed"])
def test_what_was_written_is_read(pack: Any) -> None:
    before = taken()
    after = files.read(pack(b"".join(files.pieces(before))), "dump")
    assert [after.every(each) for each in snapshot.RESOURCES] == [before.every(each) for each in snapshot.RESOURCES]
    assert (after.state, after.config, after.now, after.wall) == (before.state, before.config, 12.5, before.wall)
    assert (after.missing, after.left_out) == (("services: no",), ())


def test_any_configuration_is_the_same_afterwards() -> None:
    config = settings.read(yaml.safe_load(TUNED), "f")
    assert settings.again(json.loads(json.dumps(settings.plain(config))), "f") == config


def test_a_configuration_that_was_spoilt_says_so() -> None:
    spoilt = settings.plain(main.defaults()) | {"podMaxBackoffSeconds": "many"}
    with pytest.raises(BadObject, match=r"configuration: cannot be read: Expected `int`, got `str`"):
        settings.again(spoilt, "f")


def test_a_configuration_that_names_no_plugins_of_a_point_or_an_unknown_strategy_says_so() -> None:
    lacking = settings.plain(main.defaults())
    del lacking["profiles"][0]["plugins"]["at"]["filter"]
    with pytest.raises(BadObject, match=r"configuration.filter: is missing"):
        settings.again(lacking, "f")
    unknown = settings.plain(main.defaults())
    unknown["profiles"][0]["args"]["NodeResourceTopologyMatch"]["scoringStrategy"] = {"type": "Most"}
    with pytest.raises(BadObject, match="'Most' is not a valid Strategy"):
        settings.again(unknown, "f")


KUBECTL = {
    "a list": listed(POD, NODE, REPORT, OTHER),
    "a list as YAML": yaml.safe_dump(json.loads(listed(POD, NODE, REPORT))).encode(),
    "several documents": yaml.safe_dump_all([POD, NODE, REPORT]).encode(),
    "several lists": yaml.safe_dump_all([json.loads(listed(POD)), json.loads(listed(NODE, REPORT))]).encode(),
}


@pytest.mark.parametrize("text", KUBECTL.values(), ids=KUBECTL)
def test_what_kubectl_prints_is_read(text: bytes) -> None:
    found = files.read(text, "f")
    names = [[each.metadata.name for each in found.objects[kind.plural]] for kind in (NODES, TOPOLOGIES)]
    assert ([pod.metadata.full_name for pod in found.every(PODS)], names) == (["n/p"], [["a"], ["a"]])
    assert (found.state, found.config, found.left_out) == (None, main.defaults(), ())


def test_items_of_a_list_of_one_kind_need_not_name_it() -> None:
    bare = {"metadata": {"name": "p", "namespace": "n"}}
    assert files.read(listed(bare, kind="PodList"), "f").pod("n/p") is not None


def test_a_pod_that_never_met_a_server_gets_a_namespace_and_a_uid() -> None:
    found = files.read(listed(POD | {"metadata": {"name": "p"}}), "f").pod("default/p")
    assert found is not None
    assert found.metadata.uid == "default/p"


def test_an_odd_object_costs_itself_and_is_named() -> None:
    odd = POD | {"spec": {"containers": 7}}
    nameless = POD | {"metadata": {}}
    found = files.read(listed(odd, NODE, nameless), "f")
    assert (len(found.every(NODES)), found.every(PODS)) == (1, ())
    assert [line.partition(":")[0] for line in found.left_out] == ["Pod n/p, spec.containers", "Pod, metadata.name"]


def test_an_item_that_is_no_object_goes_by_its_place() -> None:
    text = listed(NODE)[:-2] + b', 5, {"kind": 7}]}'
    found = files.read(text, "f")
    assert [line.partition(":")[0] for line in found.left_out] == ["Snapshot, items[1]", "Snapshot, items[2].kind"]


NONSENSE = {
    "nothing": (b"", "holds no nodes, pods"),
    "another kind of file": (b'{"a": 1}', "holds no nodes, pods"),
    "no object": (b"- 1", "is not an object"),
    "half of one": (b'{"items": [', "is not a list of objects"),
    "half of a packed one": (files.packed(listed(POD) * 50)[:60], "was cut short"),
    "a broken one": (b"\x1f\x8bnonsense", "cannot be unpacked"),
    "bytes": (b"\xff\xfe", "is not UTF-8"),
    "of later times": (b'{"kind": "SchedulerDump", "schema": 2, "items": []}', "is newer than this program"),
    "odd state": (listed(POD)[:-1] + b', "kind": "SchedulerDump", "state": {"rows": 1}}', "state.rows"),
}


@pytest.mark.parametrize("text, words", NONSENSE.values(), ids=NONSENSE)
def test_what_is_no_snapshot_says_what_is_wrong(text: bytes, words: str) -> None:
    with pytest.raises(BadObject, match=words):
        files.read(text, "f")


def test_secrets_stay_where_they_are() -> None:
    annotations = {
        "kubectl.kubernetes.io/last-applied-configuration": "PASSWORD=s3cret",
        "vault.example.com/token": "s3cret",
        "numalign.io/scope": "pod",
    }
    container = {"name": "c", "env": [{"name": "PASSWORD", "value": "s3cret"}], "args": ["--key=s3cret"]}
    pod = POD | {"metadata": POD["metadata"] | {"annotations": annotations}, "spec": {"containers": [container]}}  # type: ignore[operator]
    read = files.read(listed(pod), "f")
    assert b"s3cret" not in b"".join(files.pieces(read))
    assert read.every(PODS)[0].metadata.annotations == {"numalign.io/scope": "pod"}


def test_an_object_without_anything_to_hide_stays_itself() -> None:
    pod = waitingpods.pod("p", annotations={"numalign.io/scope": "pod"})
    assert entries.discreet(pod) is pod


def test_a_file_that_unpacks_to_far_more_than_any_dump_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of zeros unpacks to a thousand times its size; a dump of 5,000 nodes has 35 MB."""
    assert dumps.LARGEST <= 256 << 20
    monkeypatch.setattr(dumps, "LARGEST", 1 << 20)
    with pytest.raises(BadObject, match="far too large"):
        files.read(files.packed(bytes(dumps.LARGEST + 1)), "zeros.gz")
