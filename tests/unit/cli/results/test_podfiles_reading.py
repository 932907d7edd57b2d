"""Which pods a file stands for, and what a person reads when it stands for none."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from numalign.api.errors import BadObject
from numalign.api.objects import requests
from numalign.api.objects.pod import PodStatus
from numalign.cli.results import podfiles
from numalign.cli.results.podfiles import PodFile

SPEC = {"containers": [{"name": "c", "resources": {"limits": {"cpu": 2, "memory": "1Gi"}}}]}
TEMPLATE = {"metadata": {"labels": {"app": "x"}}, "spec": SPEC}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "pods.yaml"


def pod(name: str = "web", **others: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": SPEC, **others}


def workload(kind: str, spec: dict[str, Any], version: str = "apps/v1") -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "w", "namespace": "prod"}, "spec": spec}


def read(file: Path, *objects: object) -> PodFile:
    file.write_text(yaml.safe_dump_all(objects))
    return podfiles.read([str(file)])


def names(found: PodFile) -> list[str]:
    return [each.metadata.full_name for each, _ in found.pods]


REPLICATED = {"replicas": 2, "template": TEMPLATE}
WORKLOADS = {
    "Deployment": (workload("Deployment", REPLICATED), 2),
    "ReplicaSet": (workload("ReplicaSet", REPLICATED), 2),
    "StatefulSet": (workload("StatefulSet", REPLICATED), 2),
    "ReplicationController": (workload("ReplicationController", REPLICATED, "v1"), 2),
    "no number": (workload("Deployment", {"template": TEMPLATE}), 1),
    "null": (workload("Deployment", {"replicas": None, "template": TEMPLATE}), 1),
    "DaemonSet": (workload("DaemonSet", {"template": TEMPLATE}), 1),
    "Job": (workload("Job", {"template": TEMPLATE}, "batch/v1"), 1),
    "parallel Job": (workload("Job", {"parallelism": 3, "template": TEMPLATE}, "batch/v1"), 3),
    "Job that needs fewer": (workload("Job", {"parallelism": 3, "completions": 2, "template": TEMPLATE}), 2),
    "Job of many completions": (workload("Job", {"completions": 5, "template": TEMPLATE}), 1),
    "CronJob": (workload("CronJob", {"jobTemplate": {"spec": {"parallelism": 2, "template": TEMPLATE}}}), 2),
}


@pytest.mark.parametrize("written, count", WORKLOADS.values(), ids=WORKLOADS)
def test_a_workload_stands_for_as_many_pods_as_it_asks_for(file: Path, written: dict[str, Any], count: int) -> None:
    assert names(read(file, written)) == [f"prod/w-{number}" for number in range(count)]


def test_lists_and_documents_come_in_the_order_of_the_file(file: Path) -> None:
    items = [pod("b"), workload("Deployment", REPLICATED)]
    found = read(file, pod("a"), {"kind": "List", "items": items}, pod("c"))
    assert names(found) == ["default/a", "default/b", "prod/w-0", "prod/w-1", "default/c"]


def test_the_items_of_a_typed_list_need_no_kind(file: Path) -> None:
    nameless_kind = {"metadata": {"name": "a"}, "spec": SPEC}
    assert names(read(file, {"kind": "PodList", "items": [nameless_kind]})) == ["default/a"]


def test_every_pod_knows_where_it_comes_from(file: Path) -> None:
    found = read(file, pod("a"), {"kind": "List", "items": [pod("b")]})
    assert found.pods[0][1] == f"{file}, document 1, line 1"
    assert found.pods[1][1].endswith(", items[0]")


def test_pods_are_as_the_api_server_hands_them_over(file: Path) -> None:
    found = read(file, pod(status={"phase": "Running", "qosClass": "BestEffort"}))
    (web, _), *_ = found.pods
    assert web.status == PodStatus()
    assert requests.effective(web).keys() == {"cpu", "memory"}


def test_a_uid_from_a_cluster_does_not_tie_pods_together(file: Path) -> None:
    found = read(file, *(pod(metadata={"name": name, "uid": "same"}) for name in "ab"))
    assert [each.metadata.uid for each, _ in found.pods] == ["", ""]


def test_generated_names_are_numbered(file: Path) -> None:
    found = read(file, *(pod(metadata={"generateName": "run-"}) for _ in range(2)))
    assert names(found) == ["default/run-1", "default/run-2"]


LEFT_OUT = {
    "a Service": ({"kind": "Service", "metadata": {"name": "s"}}, "Service s", "neither a pod nor a workload"),
    "a Job of another group": (workload("Job", {"tasks": []}, "batch.volcano.sh/v1"), "Job w", "neither a pod"),
    "a pod that has ended": (pod("old", status={"phase": "Succeeded"}), "Pod old", "has ended (Succeeded)"),
}


@pytest.mark.parametrize("written, what, why", LEFT_OUT.values(), ids=LEFT_OUT)
def test_what_has_no_pod_is_left_out_with_a_warning(file: Path, written: dict[str, Any], what: str, why: str) -> None:
    found = read(file, pod(), written)
    assert names(found) == ["default/web"]
    assert found.warnings[0].startswith(f"{what} ({file}, document 2, line ")
    assert why in found.warnings[0]


def test_resource_claims_are_pointed_out(file: Path) -> None:
    found = read(file, pod(spec={**SPEC, "resourceClaims": [{"name": "gpu"}]}))
    assert "has resource claims, which are not modelled" in found.unmodelled[0]


REFUSED = {
    "text": ("hello", 'Object ({file}, document 1, line 1): "hello" is not an object'),
    "a list": ([1], "Object ({file}, document 1, line 1): a list is not an object"),
    "no kind": ({"a": 1}, "Object ({file}, document 1, line 1), kind: "),
    "items that are no list": (
        {"kind": "List", "items": 5},
        "List ({file}, document 1, line 1), items: 5 is not a list",
    ),
    "an item that is no object": (
        {"kind": "List", "items": [5]},
        "Object ({file}, document 1, line 1, items[0]): 5 is not an object",
    ),
    "no name": ({"kind": "Pod", "spec": SPEC}, "Pod ({file}, document 1, line 1), metadata.name: missing"),
    "a bad amount": (
        pod(spec={"containers": [{"name": "c", "resources": {"limits": {"cpu": "two"}}}]}),
        'Pod web ({file}, document 1, line 1), spec.containers[0].resources.limits[cpu]: "two" is not a quantity',
    ),
    "a bad amount in a template": (
        workload("Deployment", {"template": {"spec": {"containers": [{"name": "c", "resources": {"limits": 5}}]}}}),
        "Deployment w ({file}, document 1, line 1), spec.template.spec.containers[0].resources.limits: expected",
    ),
    "an impossible amount in a template": (
        workload("Job", {"template": {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": -1}}}]}}}),
        "Job w ({file}, document 1, line 1), spec.template.spec.containers[0].resources.limits[cpu]: -1 is negative",
    ),
    "no template": (workload("Deployment", {}), "Deployment w ({file}, document 1, line 1), spec.template: missing"),
    "no spec": (workload("Deployment", None), "Deployment w ({file}, document 1, line 1), spec: missing"),  # type: ignore[arg-type]
    "a workload without name": (
        {"kind": "Deployment", "spec": REPLICATED},
        "Deployment ({file}, document 1, line 1), metadata.name: missing; the pods are named after it",
    ),
    "replicas below zero": (
        workload("Deployment", {**REPLICATED, "replicas": -1}),
        "Deployment w ({file}, document 1, line 1), spec.replicas: -1 is not a number of pods",
    ),
    "replicas in words": (
        workload("Deployment", {**REPLICATED, "replicas": "two"}),
        'spec.replicas: "two" is not a number of pods',
    ),
    "billions of replicas": (
        workload("Deployment", {**REPLICATED, "replicas": 2**31}),
        "Deployment w ({file}, document 1, line 1): more than 1000 pods altogether",
    ),
    "nothing": (None, "File {file}: holds no pods"),
    "no replicas": (
        workload("Deployment", {**REPLICATED, "replicas": 0}),
        "File {file}: holds no pods",
    ),
    "only others": (
        {"kind": "Service"},
        "File {file}: holds no pods; Service ({file}, document 1, line 1) is neither",
    ),
}


@pytest.mark.parametrize("written, why", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_admitted_is_refused_with_its_place(file: Path, written: object, why: str) -> None:
    with pytest.raises(BadObject) as refusal:
        read(file, written)
    assert why.format(file=file) in str(refusal.value)


def test_two_pods_of_one_name_are_both_named(file: Path) -> None:
    with pytest.raises(BadObject) as refusal:
        read(file, pod(), pod(metadata={"name": "web", "namespace": "default"}))
    assert f"Pod web ({file}, document 2, line " in str(refusal.value)
    assert f"metadata.name: default/web is also in {file}, document 1, line 1" in str(refusal.value)


def test_the_same_name_in_another_namespace_is_another_pod(file: Path) -> None:
    found = read(file, pod(), pod(metadata={"name": "web", "namespace": "other"}))
    assert names(found) == ["default/web", "other/web"]


@pytest.mark.parametrize("example, pods", {"pods": 5, "workloads": 4, "workers": 5, "train": 14}.items())
def test_the_examples_hold_the_pods_that_they_are_said_to(example: str, pods: int) -> None:
    found = podfiles.read([str(Path(__file__).parents[4] / "examples" / f"{example}.yaml")])
    assert (len(found.pods), found.warnings) == (pods, ())
