"""What a custom resource means: the values of the chart, and so the objects that `deploy render` prints."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from numalign.api.errors import BadObject
from numalign.api.objects.meta import ObjectMeta
from numalign.deploy import render, rights, values
from numalign.deploy.model import Image
from numalign.deploy.operator import agents, fields, install, kinds, plan, schedulers
from numalign.deploy.operator.objects import Node
from numalign.deploy.operator.plan import BadImage, ObservedCluster, PlanOptions
from numalign.deploy.release import Release

OPTIONS = PlanOptions(release=Release(manager=fields.MANAGER), values=values.read(None))
NODES = tuple(Node(ObjectMeta(name=f"c{n}", labels={"node-role.kubernetes.io/control-plane": ""})) for n in range(3))
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def observed(*nodes: Node) -> ObservedCluster:
    return ObservedCluster(objects={}, nodes=nodes or NODES, now=NOW)


def operator(spec: dict[str, Any], **meta: Any) -> kinds.NUMAResourcesOperator:
    tree = {"metadata": {"name": kinds.OPERATOR_NAME, "uid": "u", "generation": 1} | meta, "spec": spec}
    return kinds.OPERATORS.read(json.dumps(tree).encode())


def scheduler(spec: dict[str, Any], **meta: Any) -> kinds.NUMAResourcesScheduler:
    tree = {"metadata": {"name": kinds.SCHEDULER_NAME, "uid": "u", "generation": 1} | meta, "spec": spec}
    return kinds.SCHEDULERS.read(json.dumps(tree).encode())


def without_owner(tree: dict[str, Any]) -> dict[str, Any]:
    meta = {key: value for key, value in tree["metadata"].items() if key != "ownerReferences"}
    return tree | {"metadata": meta}


def test_the_objects_of_the_agents_are_what_deploy_render_prints_for_the_same_settings() -> None:
    """The golden test: the settings as a values file, through the reader of values files."""
    config = {"infoRefreshPeriod": "30s", "infoRefreshPause": "Enabled", "tolerations": [{"operator": "Exists"}]}
    spec = {
        "nodeGroups": [
            {"poolName": "worker", "config": config},
            {"name": "gpu", "nodeSelector": {"matchLabels": {"gpu": "yes"}}},
        ],
        "logLevel": "Debug",
        "imageSpec": "x.io/agent:7",
    }
    role = {"matchExpressions": [{"key": "node-role.kubernetes.io/worker", "operator": "Exists"}]}
    terms = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [role]}}}
    same = {
        "agent": {
            "verbosity": 4,
            "image": {"registry": "x.io", "repository": "agent", "tag": "7"},
            "nodeGroups": [
                {
                    "name": "worker",
                    "affinity": terms,
                    "tolerations": [{"operator": "Exists"}],
                    "period": 30,
                    "extraArgs": ["--no-publish"],
                },
                {"name": "gpu", "nodeSelector": {"gpu": "yes"}, "tolerations": [], "period": 10},
            ],
        }
    }
    planned = agents.plan_for(operator(spec), observed(), OPTIONS)
    printed = render.render(values.read(same), OPTIONS.release, components=("crds", "agent"))
    assert [without_owner(each) for each in planned.apply] == printed


def test_the_objects_of_the_scheduler_are_what_deploy_render_prints_for_the_same_settings() -> None:
    spec = {
        "schedulerName": "mine",
        "logLevel": "TraceAll",
        "cacheResyncPeriod": "7s",
        "scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 3}]},
        "preemptionMode": "Enabled",
    }
    near = {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}
    preferred = [{"weight": 100, "preference": {"matchExpressions": [near]}}]
    amounts = {"cpu": "600m", "memory": "1200Mi"}
    same = {
        "scheduler": {
            "name": "mine",
            "verbosity": 8,
            "replicas": 3,
            "cache": {"resyncPeriodSeconds": 7, "foreignPodsDetect": "OnlyExclusiveResources"},
            "scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 3}]},
            "preemptionMode": "Enabled",
            "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}},
            "resources": {"requests": amounts, "limits": amounts},
        }
    }
    planned = schedulers.plan_for(scheduler(spec, annotations={kinds.QOS: "guaranteed"}), observed(), OPTIONS)
    printed = render.render(values.read(same), OPTIONS.release, components=("scheduler",))
    assert [without_owner(each) for each in planned.apply] == printed


def test_every_object_but_the_definition_has_one_controller_that_does_not_block_its_deletion() -> None:
    planned = agents.plan_for(operator({"nodeGroups": [{"poolName": "worker"}]}), observed(), OPTIONS)
    for tree in planned.apply:
        owners = tree["metadata"].get("ownerReferences", [])
        if tree["kind"] == "CustomResourceDefinition":
            assert owners == []
        else:
            (owner,) = owners
            assert (owner["uid"], owner["controller"]) == ("u", True)
            assert "blockOwnerDeletion" not in owner
        assert "finalizers" not in tree["metadata"]
        # Plain JSON: a tuple would equal no list of the server's.
        assert json.loads(json.dumps(tree)) == tree


IMAGES: dict[str, tuple[str, str, str, str]] = {
    "x.io/a/b:1": ("x.io", "a/b", "1", ""),
    "x.io:5000/a": ("x.io:5000", "a", "latest", ""),
    "localhost/a:2": ("localhost", "a", "2", ""),
    "numalign/agent:1": ("docker.io", "numalign/agent", "1", ""),
    "busybox": ("docker.io", "library/busybox", "latest", ""),
    f"x.io/a:1@sha256:{'a' * 64}": ("x.io", "a", "", f"sha256:{'a' * 64}"),
}


@pytest.mark.parametrize("written", IMAGES)
def test_image_references_are_read_as_container_runtimes_do(written: str) -> None:
    found = plan.parsed(written, Image(repository="x"))
    assert (found.registry, found.repository, found.tag, found.digest) == IMAGES[written]


@given(st.text())
def test_no_text_breaks_the_reader_of_images(written: str) -> None:
    try:
        found = plan.parsed(written, Image(repository="x"))
    except BadImage:
        return
    assert found.repository


@pytest.mark.parametrize(
    "policy, image, accepted",
    [
        ("any", "x.io/a:1", True),
        ("digest", "x.io/a:1", False),
        ("digest", f"x.io/a@sha256:{'b' * 64}", True),
        ("trusted", f"x.io/a@sha256:{'b' * 64}", False),
        ("trusted", f"x.io/a@sha256:{'c' * 64}", True),
        ("own", "x.io/a:1", True),
    ],
)
def test_the_image_policy(policy: str, image: str, accepted: bool) -> None:
    options = structs.replace(OPTIONS, image_policy=policy, trusted=frozenset({f"sha256:{'c' * 64}"}))
    planned = schedulers.plan_for(scheduler({"imageSpec": image}), observed(), options)
    assert planned.outcome is not None
    assert (planned.outcome.reason != "InvalidSchedulerImage") == accepted
    for deployment in (each for each in planned.apply if each["kind"] == "Deployment"):
        used = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
        assert (used == image) == (policy != "own")


@pytest.mark.parametrize(
    "spec, words",
    [
        ({"schedulerName": "default-scheduler"}, "spec.schedulerName: default-scheduler is kube-scheduler's"),
        ({"schedulerName": "Not A Name"}, "spec.schedulerName:"),
        ({"cacheResyncPeriod": "soon"}, "spec.cacheResyncPeriod:"),
        ({"replicas": -1}, "spec.replicas: -1 is negative"),
        ({"replicas": 11}, "spec.replicas: 11 is more than 10"),
        ({"scoringStrategy": {"type": "Best"}}, "spec.scoringStrategy.type:"),
        ({"scoringStrategy": {"resources": [{"name": "cpu", "weight": 0}]}}, "spec.scoringStrategy.resources[0]"),
        ({"preemptionMode": "Perhaps"}, "spec.preemptionMode:"),
    ],
)
def test_a_scheduler_that_makes_no_sense_is_refused_by_field(spec: dict[str, Any], words: str) -> None:
    planned = schedulers.plan_for(scheduler(spec), observed(), OPTIONS)
    assert planned.outcome is not None
    assert (planned.outcome.state, planned.outcome.reason) == ("Degraded", "ValidationErrorUnderSpec")
    assert words in planned.outcome.message
    assert (planned.apply, planned.remove, planned.delete, planned.forget) == ((), (), (), ())


def test_what_has_no_effect_is_said() -> None:
    foreign = {kinds.REPORT_DEFINITION: kinds.BY_CLUSTER}
    resource = operator({"nodeGroups": [], "podExcludes": [{"namespace": "*"}]}, annotations=foreign)
    planned = agents.plan_for(resource, observed(), OPTIONS)
    assert planned.outcome is not None
    assert "spec.podExcludes has no effect" in planned.outcome.message
    (informer,) = [
        each
        for each in schedulers.plan_for(scheduler({"schedulerInformer": "Shared"}), observed(), OPTIONS).extras
        if each.type == "DedicatedInformerActive"
    ]
    assert informer.holds
    assert "Shared has no effect" in informer.message


def test_values_that_change_names_are_refused() -> None:
    with pytest.raises(BadObject, match="fullnameOverride"):
        plan.base_values(values.read({"fullnameOverride": "other"}), "", "")


def test_the_operator_holds_everything_that_it_grants_and_cannot_escalate() -> None:
    """In the same namespace or everywhere; otherwise the API server would refuse the roles."""
    wide = values.read({"agent": {"configz": {"enabled": True}, "removeStartupTaint": True}})
    made = install.objects(Release(), wide, wide.agent.image)
    held = rules(each for each in made if each["kind"] in ("Role", "ClusterRole"))
    operands = render.render(wide, OPTIONS.release, components=("agent", "scheduler"))
    for namespace, group, resource, verb, name in rules(
        each for each in operands if each["kind"] in ("Role", "ClusterRole")
    ):
        places, names = {"", namespace}, {"", name}
        assert any((place, group, resource, verb, each) in held for place in places for each in names), (resource, verb)
    verbs = {verb for _, _, _, verb, _ in held}
    assert not verbs & {"escalate", "bind", "impersonate", "*"}
    assert not any("*" in rule for rule in held)


def rules(roles: Any) -> set[tuple[str, str, str, str, str]]:
    """Namespace, group, resource, verb and name."""
    return {
        (role["metadata"].get("namespace", ""), group, resource, verb, name)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    }


def test_the_operators_own_pod_is_restricted_and_says_why_it_ended() -> None:
    made = install.objects(Release(), OPTIONS.values, OPTIONS.values.agent.image, document={"agent": {"period": 5}})
    (deployment,) = [each for each in made if each["kind"] == "Deployment"]
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"  # INTRO-1
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert pod["securityContext"]["runAsNonRoot"]
    assert "--values=/etc/numalign/values.json" in container["args"]
    assert [each["kind"] for each in made][:3] == ["Namespace", "CustomResourceDefinition", "CustomResourceDefinition"]
    assert Release().namespace == rights.OPERATED
