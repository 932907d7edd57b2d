"""The policies for direct mode on a real API server: wrong annotations and forged decisions are refused when a pod is
written, and everything that the scheduler accepts passes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from msgspec import structs

from numalign.api.attributes import devicespec, directresult, directspec
from numalign.api.errors import BadObject
from numalign.api.objects.pod import Pod
from numalign.deploy import podpolicy
from tests.embedded.realserver import RealServer
from tests.unit.kubelet import made

POLICIES = "/apis/admissionregistration.k8s.io/v1"
PODS = "/api/v1/namespaces/default/pods"
PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
NUMBERS = count()
TOPOLOGY, CPUS = directspec.TOPOLOGY_SPEC, directspec.CPU_SPEC


def pod(annotations: dict[str, str]) -> dict[str, Any]:
    """Two containers, one of them with a fraction of a CPU, and an init container."""

    def container(name: str, cpu: str) -> dict[str, Any]:
        return {"name": name, "image": "a", "resources": {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}}

    spec = {
        "automountServiceAccountToken": False,
        "initContainers": [container("setup", "1")],
        "containers": [container("policy", "2"), container("proxy", "500m")],
    }
    meta = {"name": f"p-{next(NUMBERS)}", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


@pytest.fixture(scope="module")
def guarded(real_server: RealServer) -> Iterator[RealServer]:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    real_server.call("POST", "/api/v1/namespaces/default/serviceaccounts", account)
    made = [(f"{POLICIES}/{PLURALS[each['kind']]}", each) for each in podpolicy.manifest()]
    answers = [real_server.call("POST", place, each) for place, each in made]
    assert [answer for status, answer in answers if status != 201] == []
    # The server compiles a new policy in the background.
    real_server.until(lambda: real_server.call("POST", PODS, pod({TOPOLOGY: "["}))[0] == 422)
    yield real_server
    for place, each in reversed(made):
        real_server.call("DELETE", f"{place}/{each['metadata']['name']}")


def scheduler_accepts(annotations: dict[str, str]) -> bool:
    containers = made.container("policy", cpu=2), made.container("proxy", cpu="500m")
    plain: Pod = made.pod("p", *containers, init=[made.container("setup", cpu=1)])
    try:
        directspec.read(structs.replace(plain, metadata=structs.replace(plain.metadata, annotations=annotations)))
    except BadObject:
        return False
    return True


FINE: dict[str, dict[str, str]] = {
    "nothing": {},
    "an empty object": {TOPOLOGY: "{}", CPUS: " {\n} "},
    "everything": {
        TOPOLOGY: json.dumps(
            {
                "policy": "Restricted",
                "scope": "Container",
                "exclusive": "Required",
                "strategy": "DistributeEvenly",
                "memory": "Enforce",
                "containers": {"exclude": ["proxy"], "overrides": {"policy": {"policy": "SingleNUMANode"}}},
            },
            indent=1,
        ),
        CPUS: '{"required": "FullPCPUs", "exclusive": "PCPULevel"}',
    },
    "devices that belong together": {
        devicespec.DEVICE_SPEC: '{"types": {"gpu": {"selector": {"matchLabels": {"scope": "any"}}}}, '
        '"joint": {"types": ["gpu", "rdma"], "scope": "SamePCIe"}}'
    },
    "a preferred CPU policy": {CPUS: '{"preferred":"SpreadByPCPUs","exclusive":"None"}'},
}
WRONG: dict[str, tuple[dict[str, str], str]] = {
    "no object": ({TOPOLOGY: "[]"}, f"[{TOPOLOGY}]: not a JSON object"),
    "no object about devices": (
        {devicespec.DEVICE_SPEC: '["gpu"]'},
        f"[{devicespec.DEVICE_SPEC}]: not a JSON object",
    ),
    "too long": ({CPUS: "{" + " " * 20_000 + "}"}, f"[{CPUS}]: not a JSON object of at most"),
    "an unknown policy": ({TOPOLOGY: '{"policy": "Single"}'}, f"[{TOPOLOGY}].policy: not one of None, BestEffort"),
    "a policy that is no text": ({TOPOLOGY: '{"policy" : 1}'}, f"[{TOPOLOGY}].policy"),
    "an unknown scope": ({TOPOLOGY: '{"scope": "container"}'}, f"[{TOPOLOGY}].scope"),
    "an unknown strategy": ({TOPOLOGY: '{"strategy": "Most"}'}, f"[{TOPOLOGY}].strategy"),
    "an unknown policy of one container": (
        {TOPOLOGY: '{"containers": {"overrides": {"proxy": {"policy": "x"}}}}'},
        f"[{TOPOLOGY}].policy",
    ),
    "an unknown container": (
        {TOPOLOGY: '{"containers": {"exclude": ["proxy", "web"]}}'},
        f"[{TOPOLOGY}].containers.exclude: the pod has no container",
    ),
    "all containers": (
        {TOPOLOGY: '{"containers": {"exclude": ["setup", "policy", "proxy"]}}'},
        f"[{TOPOLOGY}].containers.exclude: every container",
    ),
    "a fraction where whole CPUs are required": (
        {CPUS: '{"required": "FullPCPUs"}'},
        f"[{CPUS}].required: a container",
    ),
    "an unknown CPU policy": ({CPUS: '{"required": "Full"}'}, f"[{CPUS}].required: not one of"),
}


@pytest.mark.parametrize("annotations", FINE.values(), ids=FINE)
def test_what_the_scheduler_accepts_passes(guarded: RealServer, annotations: dict[str, str]) -> None:
    assert scheduler_accepts(annotations)
    status, answer = guarded.call("POST", PODS, pod(annotations))
    assert status == 201, answer["message"]


@pytest.mark.parametrize("annotations, message", WRONG.values(), ids=WRONG)
def test_a_wrong_annotation_is_refused_with_the_fields_name(
    guarded: RealServer, annotations: dict[str, str], message: str
) -> None:
    assert not scheduler_accepts(annotations)
    status, answer = guarded.call("POST", PODS, pod(annotations))
    assert status == 422
    assert message in answer["message"]


def test_with_wrong_annotations_refused_only_a_binding_writes_the_decision(guarded: RealServer) -> None:
    only_a_binding_writes_the_decision(guarded)


def only_a_binding_writes_the_decision(guarded: RealServer) -> None:
    forged = {directresult.RESULT: "{}"}
    assert guarded.call("POST", PODS, pod(forged))[0] == 403
    honest = pod({})
    assert guarded.call("POST", PODS, honest)[0] == 201
    name = honest["metadata"]["name"]
    assert guarded.patch("merge", f"{PODS}/{name}", {"metadata": {"annotations": forged}})[0] == 403
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "annotations": {directresult.RESULT: '{"version":1}'}},
        "target": {"kind": "Node", "name": "n"},
    }
    assert guarded.call("POST", f"{PODS}/{name}/binding", binding)[0] == 201
    assert guarded.patch("merge", f"{PODS}/{name}", {"metadata": {"annotations": forged}})[0] == 403
    removed = {"metadata": {"annotations": {directresult.RESULT: None}}}
    assert guarded.patch("merge", f"{PODS}/{name}", removed)[0] == 403
    other = {"metadata": {"annotations": {"other": "x"}}}
    assert guarded.patch("merge", f"{PODS}/{name}", other)[0] == 200
