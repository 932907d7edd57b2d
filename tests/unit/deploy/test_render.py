"""What an installation consists of: the objects that values make, their names, labels and rights."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
from hypothesis import given

from numalign.api.errors import BadObject
from numalign.deploy import presets, rights, values
from numalign.deploy.release import CERT_MANAGER, MONITORING, OPENSHIFT, Release
from numalign.deploy.render import COMPONENTS, ORDER, render
from numalign.scheduler import settings
from tests.strategies.values import documents

Object = dict[str, Any]
RELEASE = Release()
EVERYTHING = Release(api_versions=frozenset({MONITORING, OPENSHIFT, CERT_MANAGER}))
LABELS = {f"app.kubernetes.io/{name}" for name in ("name", "instance", "component", "part-of", "managed-by", "version")}


def made(document: Object, release: Release = RELEASE, *components: str) -> list[Object]:
    return render(values.read(document), release, components)


def one(objects: list[Object], kind: str, name: str = "") -> Object:
    (found,) = (each for each in objects if each["kind"] == kind and each["metadata"]["name"].endswith(name))
    return found


def pods(objects: list[Object]) -> Iterator[Object]:
    for each in objects:
        if each["kind"] in ("Deployment", "DaemonSet"):
            yield each["spec"]["template"]


def container(workload: Object) -> Object:
    (found,) = workload["spec"]["template"]["spec"]["containers"]
    return dict(found)


@hypothesis.settings(max_examples=30)
@given(documents())
def test_every_object_has_its_labels_and_its_turn(document: Object) -> None:
    objects = made(document, EVERYTHING)
    assert all(each["metadata"]["labels"].keys() >= LABELS for each in objects)
    ranks = [ORDER.index(each["kind"]) for each in objects]
    assert ranks == sorted(ranks)
    names = [(each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"]) for each in objects]
    assert len(set(names)) == len(names)
    assert all(len(name) <= 63 or kind == "CustomResourceDefinition" for kind, _, name in names)


@hypothesis.settings(max_examples=30)
@given(documents())
def test_the_same_values_make_the_same_objects_and_stay_as_they_are(document: Object) -> None:
    before = copy.deepcopy(document)
    assert json.dumps(made(document, EVERYTHING)) == json.dumps(made(document, EVERYTHING))
    assert document == before


@hypothesis.settings(max_examples=30)
@given(documents())
def test_workloads_find_their_pods_and_only_theirs(document: Object) -> None:
    objects = made(document, EVERYTHING)
    selectors = [
        each["spec"]["selector"]["matchLabels"] for each in objects if each["kind"] in ("Deployment", "DaemonSet")
    ]
    for pod, own in zip(pods(objects), selectors, strict=True):
        found = [selector for selector in selectors if selector.items() <= pod["metadata"]["labels"].items()]
        assert found == [own]


@hypothesis.settings(max_examples=30)
@given(documents())
def test_components_are_parts_of_the_whole(document: Object) -> None:
    objects = made(document, EVERYTHING)
    parts = [each for name in COMPONENTS for each in made(document, EVERYTHING, name)]
    assert sorted(map(json.dumps, objects)) == sorted(map(json.dumps, parts))


def test_an_unknown_component_is_refused() -> None:
    with pytest.raises(BadObject, match="Component agnt: there is none of this name; did you mean agent"):
        made({}, RELEASE, "agnt")


@hypothesis.settings(max_examples=30)
@given(documents())
def test_the_scheduler_reads_its_configuration(document: Object) -> None:
    objects = made(document)
    for each in objects:
        if each["kind"] == "ConfigMap" and "scheduler.json" in each["data"]:
            settings.read(json.loads(each["data"]["scheduler.json"]), "scheduler.json")


@pytest.mark.parametrize(
    "document, lease",
    [
        ({}, ("numalign-system", "numalign-scheduler")),
        ({"scheduler": {"mode": "only"}}, ("kube-system", "kube-scheduler")),
        ({"scheduler": {"config": {"leaderElection": {"resourceName": "mine"}}}}, ("numalign-system", "mine")),
        ({"scheduler": {"leaderElection": {"resourceNamespace": "leases"}}}, ("leases", "numalign-scheduler")),
    ],
    ids=["beside kube-scheduler", "instead of it", "named in the file", "in another namespace"],
)
def test_the_scheduler_may_use_the_lease_of_its_configuration_and_no_other(
    document: Object, lease: tuple[str, str]
) -> None:
    objects = made(document)
    election = json.loads(one(objects, "ConfigMap", "scheduler")["data"]["scheduler.json"])["leaderElection"]
    assert (election["resourceNamespace"], election["resourceName"]) == lease
    role = one(objects, "Role", "scheduler")
    assert role["metadata"]["namespace"] == lease[0]
    assert [(rule["verbs"], rule.get("resourceNames")) for rule in role["rules"]] == [
        (["create"], None),
        (["get", "update"], [lease[1]]),
    ]


def test_an_extender_runs_once_and_may_bind_only_if_it_is_to() -> None:
    for bind in (True, False):
        extender = {"clientCaSecret": "clients", "bind": bind, "port": 9999}
        objects = made({"scheduler": {"mode": "extender", "tls": {"secretName": "server"}, "extender": extender}})
        deployment = one(objects, "Deployment")
        assert (deployment["spec"]["replicas"], deployment["spec"]["strategy"]) == (1, {"type": "Recreate"})
        assert container(deployment)["command"] == ["numalign", "extender", "run"]
        assert {"--port=9999", "--pages-port=10259"} <= set(container(deployment)["args"])
        assert [each["port"] for each in one(objects, "Service")["spec"]["ports"]] == [10259, 9999]
        rules = one(objects, "ClusterRole", "scheduler")["rules"]
        assert any("pods/binding" in rule["resources"] for rule in rules) == bind
        assert not any("leases" in rule["resources"] for each in objects for rule in each.get("rules", []))


def test_a_scheduler_without_lease_has_no_right_to_leases() -> None:
    objects = made({"scheduler": {"replicas": 1, "config": {"leaderElection": {"leaderElect": False}}}})
    assert not [each for each in objects if each["kind"] == "Role" and each["metadata"]["name"].endswith("scheduler")]


@pytest.mark.parametrize(
    "document, wanted",
    [
        ({}, set()),
        ({"agent": {"configz": {"enabled": True}}}, {rights.CONFIGZ}),
        ({"agent": {"preset": "k3s"}}, {rights.CONFIGZ}),
        ({"agent": {"nodeGroups": [{"name": "a", "removeStartupTaint": True}]}}, {rights.UNTAINT}),
    ],
    ids=["by default", "with configz", "by the preset", "of a group"],
)
def test_the_agent_gets_rights_for_the_options_that_it_has(document: Object, wanted: set[str]) -> None:
    objects = made(document)
    rules = one(objects, "ClusterRole", "agent")["rules"]
    for option in (rights.CONFIGZ, rights.UNTAINT):
        (right,) = (each for each in rights.AGENT if each.option == option)
        rule = {"apiGroups": [right.group], "resources": [*right.resources], "verbs": [*right.verbs]}
        assert (rule in rules) == (option in wanted)
        assert any(option in container(each)["args"] for each in objects if each["kind"] == "DaemonSet") == (
            option in wanted
        )


def test_without_rbac_nothing_is_granted() -> None:
    granting = {"ClusterRole", "ClusterRoleBinding", "Role", "ValidatingAdmissionPolicy"}
    assert not granting & {each["kind"] for each in made({"rbac": {"create": False}}, EVERYTHING)}


def test_the_agent_sees_folders_of_the_host_read_only_and_notices_unmounts() -> None:
    for preset in presets.LAYOUTS:
        agent = one(made({"agent": {"preset": preset}}), "DaemonSet")
        mounts = {each["name"]: each for each in container(agent)["volumeMounts"]}
        paths = {each["name"]: each["hostPath"] for each in agent["spec"]["template"]["spec"]["volumes"]}
        assert {"/sys", "/proc", presets.LAYOUTS[preset].kubelet_dir} <= {each["path"] for each in paths.values()}
        assert all(mounts[name]["mountPath"] == f"/host{path['path']}" for name, path in paths.items())
        assert all(mount["readOnly"] for mount in mounts.values())
        assert mounts["kubelet"]["mountPropagation"] == "HostToContainer"
        assert not [path for path in paths.values() if path["path"].endswith(".sock") or path["type"] == "Socket"]


def test_the_device_manager_s_folder_is_mounted_where_the_kubelet_s_folder_does_not_have_it() -> None:
    """It is the same folder for every kubelet, whatever its root folder is."""
    for preset, layout in presets.LAYOUTS.items():
        agent = one(made({"agent": {"preset": preset}}), "DaemonSet")
        paths = [each.get("hostPath", {}).get("path") for each in agent["spec"]["template"]["spec"]["volumes"]]
        seen = "/var/lib/kubelet" if layout.kubelet_dir == "/var/lib/kubelet" else "/var/lib/kubelet/device-plugins"
        assert [each for each in paths if each and each.startswith("/var/lib/kubelet")] == [seen]


def test_a_socket_elsewhere_is_mounted_by_its_folder() -> None:
    agent = one(made({"agent": {"podResourcesSocket": "/run/resources/kubelet.sock"}}), "DaemonSet")
    assert "--podresources-socket=/host/run/resources/kubelet.sock" in container(agent)["args"]
    assert {"path": "/run/resources", "type": "Directory"} in [
        each.get("hostPath") for each in agent["spec"]["template"]["spec"]["volumes"]
    ]


def test_node_groups_get_a_daemon_set_each() -> None:
    groups = [{"name": "a", "nodeSelector": {"pool": "a"}}, {"name": "b", "nodeSelector": {"pool": "b"}, "period": 9}]
    objects = made({"agent": {"nodeGroups": groups}})
    sets = [each for each in objects if each["kind"] == "DaemonSet"]
    assert [each["metadata"]["name"] for each in sets] == ["numalign-agent-a", "numalign-agent-b"]
    assert [each["spec"]["template"]["spec"]["nodeSelector"]["pool"] for each in sets] == ["a", "b"]
    assert "--period=9" in container(sets[1])["args"]


@pytest.mark.parametrize("version, there", [("1.31.4", False), ("v1.32.0", True), ("1.37.1-gke.5", True)])
def test_the_policy_about_reports_needs_tokens_with_the_node(version: str, there: bool) -> None:
    kinds = [each["kind"] for each in made({}, Release(kube_version=version))]
    assert ("ValidatingAdmissionPolicy" in kinds) == there


def test_a_budget_and_a_spread_come_with_the_second_replica() -> None:
    for replicas, there in ((1, False), (2, True)):
        objects = made({"scheduler": {"replicas": replicas}})
        assert ("PodDisruptionBudget" in [each["kind"] for each in objects]) == there
        spec = one(objects, "Deployment")["spec"]["template"]["spec"]
        assert ("topologySpreadConstraints" in spec) == there


def test_another_configuration_rolls_the_pods() -> None:
    def checksum(document: Object) -> str:
        return str(one(made(document), "Deployment")["spec"]["template"]["metadata"]["annotations"]["checksum/config"])

    assert checksum({}) == checksum({"agent": {"period": 5}}) != checksum({"scheduler": {"name": "other"}})


def test_monitors_and_openshift_objects_appear_where_the_cluster_has_their_kinds() -> None:
    document = {each: {"enabled": True} for each in ("podMonitor", "serviceMonitor", "prometheusRule", "gc")}
    optional = {"PodMonitor", "ServiceMonitor", "PrometheusRule", "SecurityContextConstraints"}
    assert not optional & {each["kind"] for each in made(document)}
    assert optional <= {each["kind"] for each in made(document, EVERYTHING)}


def test_images_come_from_the_registry_of_all() -> None:
    document = {"global": {"imageRegistry": "mirror:5000/x"}, "agent": {"image": {"digest": "sha256:" + "0" * 64}}}
    objects = made(document, Release(version="9.9"))
    assert container(one(objects, "Deployment"))["image"] == "mirror:5000/x/numalign/scheduler:9.9"
    assert container(one(objects, "DaemonSet"))["image"] == "mirror:5000/x/numalign/agent@sha256:" + "0" * 64


def test_the_definition_stays_after_the_release_unless_told_otherwise() -> None:
    policy = "helm.sh/resource-policy"
    kept, gone = made({}), made({"crds": {"keep": False}})
    assert one(kept, "CustomResourceDefinition")["metadata"]["annotations"][policy] == "keep"
    assert policy not in one(gone, "CustomResourceDefinition")["metadata"]["annotations"]
    assert "CustomResourceDefinition" not in [each["kind"] for each in made({"crds": {"install": False}})]
