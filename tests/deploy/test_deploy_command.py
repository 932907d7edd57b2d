"""`numalign deploy` as people type it, against an embedded cluster over HTTPS: output, exit codes, and what is left.

The numbers DP-xx are those of the acceptance list of the reference deployer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from numalign.cli.main import app
from tests.embedded import clusters
from tests.embedded.clusters import Up
from tests.unit.deploy.test_staticpod import STOCK

NAMESPACE = "/api/v1/namespaces/numalign-system"
DEPLOYMENT = "/apis/apps/v1/namespaces/numalign-system/deployments/numalign-scheduler"
BINDING = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/numalign-agent"
DEFINITION = "CustomResourceDefinition noderesourcetopologies.topology.node.k8s.io"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with clusters.up(tmp_path_factory.mktemp("deployed"), "--nodes 2 --with-scheduler") as found:
        yield found


@pytest.fixture
def deploy(cluster: Up, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Runs a line; nothing is installed before and after the test."""
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))

    def run(line: str) -> Result:
        return CliRunner().invoke(app, ["deploy", *line.split()])

    yield run
    assert run("remove").exit_code == 0
    assert cluster.call("GET", NAMESPACE)[0] == 404


def document(result: Result) -> Any:
    return json.loads(result.stdout)


def test_an_installation_lives_from_diff_to_remove(deploy: Any, cluster: Up) -> None:
    differences = deploy("diff")
    assert differences.exit_code == 2
    assert "+ Deployment numalign-system/numalign-scheduler" in differences.stdout
    assert deploy("status").exit_code == 2

    first = deploy("apply")
    assert (first.exit_code, first.stdout.splitlines()[-1]) == (0, "18 created, 1 skipped; ready")
    assert f"{DEFINITION}: skipped" in first.stdout

    second = deploy("apply -o json")
    assert second.exit_code == 0
    assert document(second)["summary"] == {"skipped": 1, "unchanged": 18}
    assert document(second)["ready"] is True
    assert deploy("diff").stdout.endswith("no difference\n")
    assert deploy("wait").stdout == "numalign is ready\n"

    shown = deploy("status -o json")
    assert (shown.exit_code, document(shown)["ready"]) == (0, True)
    words = {each["object"]: each["words"] for each in document(shown)["objects"]}
    assert words["reports of DaemonSet numalign-system/numalign-agent"] == "2 of 2 nodes have a fresh report"

    removed = deploy("remove -o json")
    assert removed.exit_code == 0
    assert {each["action"] for each in document(removed)["objects"]} == {"removed"}
    assert deploy("remove").stdout == "numalign is not installed in numalign-system\n"


def test_a_second_release_takes_nothing_from_the_first(deploy: Any, cluster: Up) -> None:
    assert deploy("apply --no-wait").exit_code == 0
    _, before = cluster.call("GET", BINDING)
    refused = deploy("apply -n elsewhere")
    assert refused.exit_code == 1
    assert "and 7 more objects belong to release numalign in namespace numalign-system" in refused.stderr
    assert "numalign deploy remove --name numalign -n numalign-system" in refused.stderr
    assert cluster.call("GET", BINDING) == (200, before)
    assert cluster.call("GET", "/api/v1/namespaces/elsewhere")[0] == 404
    assert deploy("apply --no-wait -n elsewhere --name second").exit_code == 0
    assert deploy("remove -n elsewhere --name second").exit_code == 0
    assert cluster.call("GET", BINDING) == (200, before)


def test_drift_is_shown_by_a_diff_and_put_back(deploy: Any, cluster: Up) -> None:
    deploy("apply --no-wait")
    live = cluster.call("GET", DEPLOYMENT)[1]
    live["spec"]["replicas"] = 5
    # A controller may have written the status meanwhile.
    del live["metadata"]["resourceVersion"]
    assert cluster.call("PUT", DEPLOYMENT, live)[0] == 200
    shown = deploy("diff -o json")
    assert shown.exit_code == 2
    (change,) = [each for each in document(shown)["changes"] if each["action"] == "configured"]
    assert change["fields"] == [{"field": "spec.replicas", "change": "changed", "old": 5, "new": 2}]
    assert "    spec.replicas: 5 -> 2" in deploy("diff").stdout
    assert deploy("diff --client-side").exit_code == 2
    assert "numalign-scheduler: configured" in deploy("apply --no-wait").stdout
    assert cluster.call("GET", DEPLOYMENT)[1]["spec"]["replicas"] == 2


@pytest.mark.parametrize("how", ["client", "server"])
def test_a_dry_run_changes_nothing(deploy: Any, cluster: Up, how: str) -> None:
    shown = deploy(f"apply --dry-run {how} -o json")
    assert (shown.exit_code, document(shown)["dryRun"]) == (0, how)
    assert cluster.call("GET", NAMESPACE)[0] == 404


def test_parts_can_be_installed_alone_and_what_left_is_pruned(deploy: Any) -> None:
    """DP-11"""
    assert deploy("apply -c crds -c scheduler --set scheduler.verbosity=9").exit_code == 0
    objects = [each["object"] for each in document(deploy("status -o json"))["objects"]]
    assert "Deployment numalign-system/numalign-scheduler" in objects
    assert not [each for each in objects if "agent" in each]
    both = deploy("apply --set scheduler.replicas=1")
    assert "PodDisruptionBudget numalign-system/numalign-scheduler: pruned" in both.stdout


def test_every_node_reports_and_an_aligned_pod_runs(deploy: Any, cluster: Up) -> None:
    """DP-08"""
    assert deploy("apply").exit_code == 0
    reports = cluster.call("GET", "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies")[1]["items"]
    assert len(reports) == 2
    for report in reports:
        assert all("cpu" in {each["name"] for each in zone["resources"]} for zone in report["zones"])
        assert "nodeTopologyPodsFingerprint" in {each["name"] for each in report["attributes"]}
    limits = {"cpu": "4", "memory": "1Gi"}
    container = {"name": "main", "image": "a", "resources": {"limits": limits}}
    spec = {"schedulerName": "numalign", "containers": [container]}
    pods = "/api/v1/namespaces/default/pods"
    assert cluster.call("POST", pods, {"metadata": {"name": "aligned"}, "spec": spec})[0] == 201
    clusters.awaited(lambda: cluster.call("GET", f"{pods}/aligned")[1]["status"].get("phase") == "Running")
    cluster.call("DELETE", f"{pods}/aligned")


def test_what_was_rendered_and_applied_by_hand_is_adopted_without_a_change(deploy: Any, cluster: Up) -> None:
    """DP-12, and that render and apply mean the same objects."""
    line = "--kube-version 1.37.1 --set namespace.create=true"
    for tree in document(deploy(f"render {line} -o json"))["items"]:
        code, said = cluster.call("POST", place(tree), tree)
        assert code == 201 or tree["kind"] == "CustomResourceDefinition", said
    said = "is not installed in numalign-system by this command: DaemonSet numalign-system/numalign-agent belongs to "
    assert said in deploy("status").stdout
    assert said in deploy("wait").stderr
    refused = deploy("apply")
    assert refused.exit_code == 1
    assert "exists already and belongs to" in refused.stderr
    assert refused.stderr.endswith("nothing was changed\n")
    adopted = document(deploy("apply --adopt -o json"))
    changed = {each["name"]: each["fields"] for each in adopted["changes"] if each["action"] == "configured"}
    assert set(changed) <= {"noderesourcetopologies.topology.node.k8s.io"}, changed
    # The namespace was there before, so that it stays.
    assert deploy("remove").exit_code == 0
    cluster.call("DELETE", NAMESPACE)
    clusters.awaited(lambda: cluster.call("GET", NAMESPACE)[0] == 404)


PLURALS = {"NetworkPolicy": "networkpolicies", "ValidatingAdmissionPolicy": "validatingadmissionpolicies"}


def place(tree: dict[str, Any]) -> str:
    version, namespace = tree["apiVersion"], tree["metadata"].get("namespace")
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    plural = PLURALS.get(tree["kind"], f"{tree['kind'].lower()}s")
    return f"{base}/namespaces/{namespace}/{plural}" if namespace else f"{base}/{plural}"


@pytest.mark.parametrize(
    "line, why",
    [
        ("apply --set agent.mode=foo", "agent.mode"),
        ("apply --set scheduler.replicas=-1", "scheduler.replicas"),
        ("apply --no-such-option", "No such option"),
        ("apply --timeout soon", "is not a length of time"),
        ("wait --timeout -5s", "is negative"),
        ("", "Usage: numalign deploy"),
        ("static-pod", "Usage: numalign deploy static-pod"),
        ("status --name Bad_Name", "is not a name of small letters"),
        ("apply -f /no/such/file", "cannot be read"),
        ("apply -c nothing", "there is none of this name"),
        ("apply --kubeconfig /no/such/file", "/no/such/file"),
        ("apply --dry-run maybe", "maybe"),
        ("diff -n Bad_Name", "Bad_Name"),
        ("no-such-command", "No such command"),
        ("images --registry https://mirror", '--registry: "https://mirror" is not a registry'),
        ("apply --set global.imageRegistry=https://mirror", "global.imageRegistry"),
        ("detect --platform Nomad", "is not a kind and a version"),
        ("wait", "is not installed"),
        ("kubelet --machine nothing", "no such preset"),
        ("kubelet --machine 2x16 --node a", "exclusive"),
        ("kubelet --machine 2x16 --cpu-option x", "is not a name"),
        ("kubelet --machine 2x16 --reserved-cpus 99", "the machine has no CPU 99"),
        ("kubelet --node no-such-node", "404"),
        ("static-pod install --skip-rights --host-root /no/such", "does not exist"),
    ],
)
def test_wrong_usage_and_wrong_values_end_with_1_and_a_sentence(deploy: Any, line: str, why: str) -> None:
    """DP-07, and its kind."""
    found = deploy(line)
    assert found.exit_code == 1, found.output
    assert why in found.stderr
    assert "Traceback" not in found.output


def test_a_server_that_is_not_there_is_named(deploy: Any, tmp_path: Path) -> None:
    config = {
        "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:9"}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": ""}}],
        "current-context": "a",
    }
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    found = deploy(f"apply --kubeconfig {tmp_path / 'config'}")
    assert found.exit_code == 1
    assert found.stderr.startswith("numalign: Cluster http://127.0.0.1:9: cannot be asked: ")
    assert "is this its kubeconfig?" in found.stderr


@pytest.mark.parametrize("line", ["apply", "status", "validate", "remove"])
def test_a_user_that_the_server_does_not_know_is_no_finding(
    deploy: Any, cluster: Up, tmp_path: Path, line: str
) -> None:
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    for user in config["users"]:
        user["user"] = {"token": "expired"}
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    found = deploy(f"{line} --kubeconfig {tmp_path / 'config'}")
    assert found.exit_code == 1
    assert "401 Unauthorized" in found.stderr
    assert "log in again" in found.stderr


def test_what_is_not_ready_in_time_is_named_with_3(deploy: Any) -> None:
    late = deploy("apply --set scheduler.nodeSelector.no=node --timeout 2s -o json")
    assert late.exit_code == 3, late.output
    said = "Deployment numalign-system/numalign-scheduler: 0 of 2 replicas available; pod numalign-scheduler-"
    assert said in late.stderr
    assert ": is on no node: Unschedulable: 0/2 nodes are available" in late.stderr
    assert document(late)["ready"] is False
    assert deploy("wait --timeout 1s").exit_code == 3
    assert deploy("status").exit_code == 2


def test_pods_that_an_admission_rule_refuses_are_no_riddle(deploy: Any) -> None:
    classes = "agent.priorityClassName=nothing,scheduler.priorityClassName=nothing"
    late = deploy(f"apply --set {classes} --timeout 3s")
    assert late.exit_code == 3, late.output
    for what in ("Deployment numalign-system/numalign-scheduler", "DaemonSet numalign-system/numalign-agent"):
        (line,) = [each for each in late.stderr.splitlines() if each.startswith(f"numalign: warning: {what}: ")]
        assert line.endswith("no pod can be created: no PriorityClass with name nothing was found")


def test_the_platform_is_told(deploy: Any) -> None:
    """DP-04"""
    found = document(deploy("detect -o json"))
    assert found["platform"]["discovered"] == "Kubernetes"
    assert found["nodeCount"] == 2
    assert deploy("detect").stdout.startswith("Kubernetes:v1.37.1")
    assert deploy("detect --suggest-values").stdout == "{}\n"
    assert deploy("detect -P openshift:4.20").stdout.startswith("OpenShift:4.20\n")


def test_the_cluster_is_validated_by_the_doctor(deploy: Any) -> None:
    """DP-05 and DP-06: an embedded cluster is configured well, and a check that finds something ends with 2."""
    assert deploy("apply").exit_code == 0
    well = deploy("validate -o json --check topology-policy-none --check cpu-manager-not-static")
    assert well.exit_code == 0, well.output
    assert deploy("validate --check no-such-check").exit_code == 1
    assert deploy("validate --no-such-option").exit_code == 1


def test_images_are_listed_and_moved_to_another_registry(deploy: Any) -> None:
    """DP-02"""
    line = "images --set agent.image.tag=x --set global.imageRegistry=quay.example"
    assert deploy(f"{line} --raw").stdout.splitlines()[0] == "quay.example/numalign/agent:x"
    listed = document(deploy(f"{line} -o json --registry mirror.example"))["images"]
    assert listed[0] == {
        "component": "agent",
        "reference": "quay.example/numalign/agent:x",
        "mirror": "mirror.example/numalign/agent:x",
    }


def test_a_kubelet_configuration_is_printed_and_passes_its_own_check(deploy: Any, tmp_path: Path) -> None:
    printed = deploy("kubelet --machine epyc-nps4 --form kubeadm-patch")
    assert printed.exit_code == 0
    assert "kubeadm upgrade node phase kubelet-config" in printed.stdout
    file = tmp_path / "kubelet.yaml"
    file.write_text(printed.stdout)
    assert deploy(f"kubelet --machine epyc-nps4 --check {file}").exit_code == 0
    other = deploy(f"kubelet --machine epyc-nps1 --check {file} -o json")
    assert (other.exit_code, document(other)["success"]) == (2, False)
    file.write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nkubeReserved: {memory: 3Gi}\n"
    )
    amended = document(deploy(f"kubelet --machine 2x16 --base {file} -o json"))
    assert amended["configuration"]["reservedMemory"][0]["limits"] == {"memory": "1586Mi"}


def test_the_report_of_a_node_is_enough_for_its_kubelet_configuration(deploy: Any) -> None:
    """The nodes of the cluster are of the preset 2x16."""
    of_node = document(deploy("kubelet --node node-0 -o json"))["configuration"]
    assert of_node == document(deploy("kubelet --machine 2x16 -o json"))["configuration"]


def test_kube_scheduler_is_replaced_and_restored_with_the_rights_of_its_user(
    deploy: Any, cluster: Up, tmp_path: Path
) -> None:
    manifest = tmp_path / "etc/kubernetes/manifests/kube-scheduler.yaml"
    manifest.parent.mkdir(parents=True)
    manifest.write_bytes(STOCK)
    host = f"--host-root {tmp_path}"
    done = deploy(f"static-pod install {host} --kubeconfig {cluster.kubeconfig} --set scheduler.image.tag=v9")
    assert done.exit_code == 0, done.output
    assert "every control-plane host needs this" in done.stdout
    code, role = cluster.call("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/numalign:kube-scheduler")
    assert code == 200
    reports = [rule for rule in role["rules"] if rule["resources"] == ["noderesourcetopologies"]]
    assert reports[0]["verbs"] == ["list", "watch"]
    config = yaml.safe_load((tmp_path / "etc/kubernetes/numalign/scheduler.yaml").read_text())
    assert config["leaderElection"]["resourceName"] == "kube-scheduler"
    assert config["profiles"][0]["schedulerName"] == "default-scheduler"
    shown = deploy(f"static-pod status {host} -o json")
    assert (shown.exit_code, document(shown)["standing"]) == (0, "numalign")
    assert document(shown)["image"].endswith(":v9")
    assert deploy(f"static-pod restore {host}").exit_code == 0
    assert manifest.read_bytes() == STOCK
