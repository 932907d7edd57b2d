"""The decision for a pod as an annotation: it comes back as it was written, and counts for one pod on one node."""

import json
from typing import Any

import pytest
from msgspec import structs

from numalign.api.attributes import directresult
from numalign.api.attributes.directresult import ContainerResult, DeviceGrant, DirectResult, ZoneAmounts
from numalign.api.errors import BadObject
from numalign.api.objects.pod import Pod
from tests.unit.kubelet import made

RESULT = DirectResult(
    version=1,
    uid="p",
    node="n",
    policy="single-numa-node",
    containers=(
        ContainerResult(
            name="a",
            cpuset="0-5",
            zones=(0,),
            mems="0",
            resources={"0": {"cpu": "6", "memory": "8Gi"}},
            devices={"example.com/gpu": (DeviceGrant(0),)},
        ),
        ContainerResult(name="proxy"),
    ),
    cpuset="0-5",
    numa_node_resources=(ZoneAmounts(0, {"cpu": "6", "memory": "8Gi"}),),
)


def pod(text: str, node: str = "n", uid: str = "p") -> Pod:
    plain = made.pod("p")
    meta = structs.replace(plain.metadata, uid=uid, annotations={directresult.RESULT: text})
    return structs.replace(plain, metadata=meta, spec=structs.replace(plain.spec, node_name=node))


def test_what_is_written_is_read() -> None:
    assert directresult.of_pod(pod(directresult.encode(RESULT))) == RESULT


def test_the_text_has_the_names_that_agents_read() -> None:
    assert json.loads(directresult.encode(RESULT)) == {
        "version": 1,
        "uid": "p",
        "node": "n",
        "policy": "single-numa-node",
        "containers": [
            {
                "name": "a",
                "cpuset": "0-5",
                "zones": [0],
                "mems": "0",
                "resources": {"0": {"cpu": "6", "memory": "8Gi"}},
                "devices": {"example.com/gpu": [{"minor": 0}]},
            },
            {"name": "proxy"},
        ],
        "cpuset": "0-5",
        "numaNodeResources": [{"node": 0, "resources": {"cpu": "6", "memory": "8Gi"}}],
    }


def test_koordinators_agent_gets_the_part_that_it_understands() -> None:
    assert json.loads(directresult.encode_for_koordinator(RESULT)) == {
        "cpuset": "0-5",
        "numaNodeResources": [{"node": 0, "resources": {"cpu": "6", "memory": "8Gi"}}],
    }


@pytest.mark.parametrize("where", [{"node": "other"}, {"uid": "other"}], ids=["node", "pod"])
def test_a_copied_annotation_has_no_effect(where: Any) -> None:
    assert directresult.of_pod(pod(directresult.encode(RESULT), **where)) is None


def test_a_result_of_a_later_version_is_left_alone() -> None:
    assert directresult.of_pod(pod(directresult.encode(structs.replace(RESULT, version=2)))) is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version":1,"uid":"p","node":"n","cpuset":"x"}', "[" * 10_000])
def test_a_text_that_is_no_result_is_a_bad_object(text: str) -> None:
    with pytest.raises(BadObject, match="resource-status"):
        directresult.of_pod(pod(text))


def test_a_pod_without_the_annotation_has_no_result() -> None:
    assert directresult.of_pod(made.pod("p")) is None
