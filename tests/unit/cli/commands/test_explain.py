"""`numalign explain`: why a pod goes nowhere, what would help, or where it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import structs

from numalign.api.objects.meta import OwnerReference
from numalign.api.objects.pod import Pod, PodCondition
from numalign.cli.display import formats, matrix
from numalign.cli.display.values import Lacking, ZoneLack
from numalign.cli.results import explaindraw, explanation
from numalign.cli.results.explanation import CauseOutput, PlacementOutput
from numalign.placement.columns.holdings import Source
from numalign.placement.explain import wording
from numalign.placement.explain.nodeview import Tenant, ZoneCharge
from numalign.scheduler.explain.explanations import PodProgress, Stage
from tests.unit.cli import clusterfiles
from tests.unit.cli.clusterfiles import busy, run, written
from tests.unit.scheduler import servers, waitingpods
from tests.unit.scheduler.servers import on, trainer

WANTS = {"cpu": "4", "memory": "1Gi", "nvidia.com/gpu": "2"}
CONFIGURATION = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
CONTAINER = {"name": "main", "resources": {"limits": WANTS}}


REFUSED = PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message="0/2 nodes")


def seen(pod: Pod) -> Pod:
    """The pod after a scheduler has looked at it."""
    return structs.replace(pod, status=structs.replace(pod.status, conditions=(REFUSED,)))


WAITING = """\
late  waiting
  asks for  4 cpu, 1Gi memory, 2 nvidia.com/gpu (Guaranteed)
  it says   Unschedulable: 0/2 nodes

0 of 2 nodes can take the pod

  nodes  why                                                                      which
  --------------------------------------------------------------------------------------------
      2  container main needs 2 nvidia.com/gpu in one NUMA zone, best zone has 1  gpu-a, gpu-b

closest is gpu-a (single-numa-node, scope container):
          nvidia.com/gpu   cpu
  --------------------------------------
  needs   2 in one zone    4 in one zone
  zone 0  1 free, 1 short  90 free
  zone 1  1 free, 1 short  92 free

It would fit on gpu-a without pod train-0, which holds 3 nvidia.com/gpu in zone 0; or on gpu-a and
gpu-b with 1 nvidia.com/gpu instead of 2.
"""


def shape(folder: Path, **manifest: Any) -> str:
    file = folder / "shape.yaml"
    spec = {"containers": [CONTAINER]}
    file.write_text(
        yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec} | manifest)
    )
    return str(file)


def test_a_pod_that_waits_is_explained(tmp_path: Path) -> None:
    file = written(tmp_path, [*busy(), clusterfiles.pod(seen(trainer("late", gpus=2)))])
    result = run("explain", "pod", "late", "--snapshot", file)
    assert result.exit_code == 1
    assert result.stdout == WAITING


def test_the_everyday_8_gpu_job_is_said_never_to_fit_before_anything_else(tmp_path: Path) -> None:
    file = written(tmp_path, [*busy(), clusterfiles.pod(seen(trainer("train-8", gpus=8)))])
    result = run("explain", "pod", "train-8", "--snapshot", file)
    lines = result.stdout.splitlines()
    assert lines[2].split("  ", 2)[1:] == [
        "never fits",
        "container main needs 8 nvidia.com/gpu in one NUMA zone, best zone has 4, even when",
    ]
    assert "closest" not in result.stdout
    assert "even when empty, the best is gpu-a (single-numa-node, scope container):" in lines
    assert "  zone 0  4 in all, 4 short  94 in all" in lines
    told = json.loads(run("explain", "pod", "train-8", "--snapshot", file, "-o", "json").stdout)
    assert told["asked"]["suggestions"][0]["policies"] == ["best-effort"]


def test_requests_are_listed_in_one_order() -> None:
    assert formats.wants({"nvidia.com/gpu": 1, "memory": 1 << 30, "a.com/b": 2, "cpu": 4}) == (
        "4 cpu, 1Gi memory, 2 a.com/b, 1 nvidia.com/gpu"
    )


def test_a_shape_with_resource_claims_is_not_scheduled_and_says_only_that(tmp_path: Path) -> None:
    spec = {"containers": [CONTAINER], "resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]}
    result = run("explain", "shape", "-f", shape(tmp_path, spec=spec), "--snapshot", written(tmp_path, busy()))
    assert (result.exit_code, result.stderr) == (1, "")
    assert "pod uses resource claims, which this scheduler does not allocate" in result.stdout


def test_a_running_pod_has_node_and_zones(tmp_path: Path) -> None:
    result = run("explain", "pod", "train-1", "--snapshot", written(tmp_path, busy()))
    assert result.exit_code == 0
    assert "train-1  running" in result.stdout
    assert "zones     main in zone 1 (observed)" in result.stdout


def test_a_rejected_pod_has_the_reason_and_where_an_equal_pod_would_go(tmp_path: Path) -> None:
    turned_away = on(
        trainer("late", gpus=1), "gpu-a", phase="Failed", reason="TopologyAffinityError", message="no room"
    )
    result = run("explain", "pod", "late", "--snapshot", written(tmp_path, [*busy(), clusterfiles.pod(turned_away)]))
    assert result.exit_code == 1
    assert "late  rejected" in result.stdout
    assert "it says   TopologyAffinityError: no room" in result.stdout
    assert "2 of 2 nodes can take the pod" in result.stdout


def test_of_a_node_without_a_report_that_rejected_the_pod_nothing_can_be_said(tmp_path: Path) -> None:
    turned_away = on(trainer("late"), "bare", phase="Failed", reason="TopologyAffinityError")
    items = [*clusterfiles.node("bare", reported=False), clusterfiles.pod(turned_away)]
    result = run("explain", "pod", "late", "--snapshot", written(tmp_path, items), "-o", "json")
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert (told["asked"]["fitting"], told["asked"]["causes"][0]["why"]) == ([], wording.CANNOT_SAY)
    assert told["pod"]["final"].endswith("delete it and create it again")
    drawn = run("explain", "pod", "late", "--snapshot", written(tmp_path, items)).stdout
    assert "final     the pod is Failed for good, and no scheduler tries it again" in drawn


def test_the_owner_of_a_rejected_pod_creates_another_one(tmp_path: Path) -> None:
    turned_away = servers.owned(on(trainer("late"), "gpu-a", phase="Failed", reason="TopologyAffinityError"), "u")
    result = run("explain", "pod", "late", "--snapshot", written(tmp_path, [*busy(), clusterfiles.pod(turned_away)]))
    assert "the pod is Failed for good; ReplicaSet set creates another one" in result.stdout


def of_priority(pod: Pod, priority: int, **status: Any) -> Pod:
    spec = structs.replace(pod.spec, priority=priority)
    return structs.replace(pod, spec=spec, status=structs.replace(pod.status, **status))


def test_pods_that_are_evicted_for_a_preemptor_are_named_and_say_so_themselves(tmp_path: Path) -> None:
    condition = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
    victim = of_priority(on(trainer("victim", gpus=4), "gpu-a", phase="Running"), 0, conditions=(condition,))
    victim = structs.replace(
        victim, metadata=structs.replace(victim.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    )
    beside = of_priority(on(trainer("beside"), "gpu-a", phase="Running"), 0)
    urgent = of_priority(trainer("urgent", gpus=4), 1000, nominated_node_name="gpu-a")
    file = written(tmp_path, [*clusterfiles.node("gpu-a"), *map(clusterfiles.pod, (victim, beside, urgent))])
    told = json.loads(run("explain", "pod", "urgent", "--snapshot", file, "-o", "json").stdout)
    assert (told["pod"]["nominated"], told["pod"]["evicted"]) == ("gpu-a", ["default/victim"])
    drawn = run("explain", "pod", "urgent", "--snapshot", file).stdout
    assert "preempts  pods of lower priority on gpu-a are evicted for it: default/victim" in drawn
    assert "evicted for a pod of higher priority" in run("explain", "pod", "victim", "--snapshot", file).stdout
    assert "evicted" not in run("explain", "pod", "beside", "--snapshot", file).stdout


def test_without_a_scheduler_the_last_report_of_a_node_is_not_known_and_the_command_says_so(tmp_path: Path) -> None:
    node, report = clusterfiles.node("gpu-a")
    for items, said in (([node], True), ([node, report], False)):
        result = run("explain", "pod", "p", "--snapshot", written(tmp_path, [*items, clusterfiles.pod(trainer("p"))]))
        assert ("a running scheduler still uses the last report" in result.stderr) is said


def bound_at(pod: Pod, second: int, scheduler: str) -> Pod:
    condition = PodCondition(type="PodScheduled", status="True", last_transition_time=f"2026-01-01T00:00:{second:02}Z")
    spec = structs.replace(pod.spec, scheduler_name=scheduler)
    return structs.replace(pod, spec=spec, status=structs.replace(pod.status, conditions=(condition,)))


def test_who_took_the_room_of_a_rejected_pod_is_named(tmp_path: Path) -> None:
    turned_away = on(trainer("late", gpus=4), "gpu-a", phase="Failed", reason="TopologyAffinityError")
    pods = [
        bound_at(turned_away, 20, "numalign"),
        bound_at(on(trainer("quick"), "gpu-a"), 19, "default-scheduler"),
        bound_at(on(trainer("old"), "gpu-a"), 1, "default-scheduler"),
        bound_at(on(trainer("ours"), "gpu-a"), 19, "numalign"),
    ]
    file = written(tmp_path, [*clusterfiles.node("gpu-a"), *map(clusterfiles.pod, pods)])
    told = json.loads(run("explain", "pod", "late", "--snapshot", file, "-o", "json").stdout)
    assert told["pod"]["takenBy"] == ["default/quick (default-scheduler)"]
    assert (
        "room      other schedulers bound pods to gpu-a then"
        in run("explain", "pod", "late", "--snapshot", file).stdout
    )


PLACED = {
    "never reported": ({}, "zones     not known: the node has no topology report, and the pod was placed without"),
    "expected by the scheduler": ({"numalign.io/placement": "v1;main=1"}, "zones     main in zone 1 (predicted)"),
}


@pytest.mark.parametrize("annotations, line", PLACED.values(), ids=PLACED)
def test_pinned_cpus_on_a_node_without_a_report_are_somewhere(
    annotations: dict[str, str], line: str, tmp_path: Path
) -> None:
    pod = on(trainer("p"), "bare", phase="Running")
    pod = structs.replace(pod, metadata=structs.replace(pod.metadata, annotations=annotations))
    items = [*clusterfiles.node("bare", reported=False), clusterfiles.pod(pod)]
    assert line in run("explain", "pod", "p", "--snapshot", written(tmp_path, items)).stdout


def test_zones_that_no_report_tells_apart_are_all_named() -> None:
    tenant = Tenant(
        uid="u",
        name="d/p",
        source=Source.UNKNOWN,
        containers={},
        charges=(ZoneCharge(resource="cpu", amount=80, zones=(0, 1)),),
    )
    placed = explanation.placement_output(PodProgress(stage=Stage.RUNNING, node="n", tenant=tenant))
    assert explaindraw.placement(placed) == "zone 0 or 1, not reported"


def test_a_gated_pod_is_shown_as_gated(tmp_path: Path) -> None:
    gated = waitingpods.pod("late", {"schedulingGates": [{"name": "example.com/quota"}]})
    result = run("explain", "pod", "late", "--snapshot", written(tmp_path, [*busy(), clusterfiles.pod(gated)]))
    assert result.exit_code == 0
    assert "gated by     example.com/quota; no scheduler looks at it" in result.stdout


def test_a_pod_of_another_scheduler_is_shown_as_such(tmp_path: Path) -> None:
    stock = waitingpods.pod("late", {"schedulerName": "default-scheduler"})
    result = run("explain", "pod", "late", "--snapshot", written(tmp_path, [*busy(), clusterfiles.pod(stock)]))
    assert "the pod names scheduler default-scheduler; what follows is what numalign would" in result.stdout


def test_a_pod_whose_scheduler_s_name_is_misspelt_fits_and_is_not_scheduled(tmp_path: Path) -> None:
    spelt = waitingpods.pod("late", {"schedulerName": "my-own"})
    file = written(tmp_path, [*busy(), clusterfiles.pod(spelt)])
    result = run("explain", "pod", "late", "--snapshot", file)
    assert result.exit_code == 1
    first = " ".join(result.stdout.partition("scheduler ")[2].split())
    assert first.startswith(
        "no scheduler has looked at the pod: it has no PodScheduled condition. Does a scheduler named my-own run? "
        "Pods here were scheduled under numalign"
    )
    told = json.loads(run("explain", "pod", "late", "--snapshot", file, "-o", "json").stdout)
    assert (told["fits"], told["asked"]["fits"], "my-own" in told["pod"]["unattended"]) == (False, True, True)


def test_a_pod_that_its_scheduler_has_not_reached_yet_would_be_placed(tmp_path: Path) -> None:
    result = run(
        "explain", "pod", "late", "--snapshot", written(tmp_path, [*busy(), clusterfiles.pod(trainer("late"))])
    )
    assert result.exit_code == 0
    assert "other pods were scheduled under the name numalign" in " ".join(result.stdout.split())


URGENT = {"containers": [CONTAINER | {"resources": {"limits": WANTS | {"nvidia.com/gpu": "4"}}}], "priority": 1000}


def test_a_shape_of_high_priority_preempts_and_names_the_pods_that_go(tmp_path: Path) -> None:
    old, new = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")
    pods = [
        structs.replace(pod, status=structs.replace(pod.status, start_time=start))
        for pod, start in ((trainer("long", gpus=3), old), (trainer("short", gpus=3), new))
    ]
    items = clusterfiles.node("gpu-a", *pods)
    for each in items[1:3]:
        each["status"]["startTime"] = {"long": old, "short": new}[each["metadata"]["name"]]
    file = written(tmp_path, items)
    result = run("explain", "shape", "-f", shape(tmp_path, spec=URGENT), "--snapshot", file)
    assert result.exit_code == 0
    assert result.stdout.endswith("It would preempt 1 pod of priority 0 on gpu-a: short.\n")
    several = run("explain", "shape", "-f", shape(tmp_path, spec=URGENT), "--replicas", "3", "--snapshot", file)
    assert several.exit_code == 1
    assert "2 of 3 pods find a node: gpu-a 2" in several.stdout
    both = run("explain", "shape", "-f", shape(tmp_path, spec=URGENT), "--replicas", "2", "--snapshot", file)
    assert both.exit_code == 0
    assert "without preemption, 0 of 1 node can take the pod" in both.stdout
    assert both.stdout.count("would preempt") == 2
    told = json.loads(
        run("explain", "shape", "-f", shape(tmp_path, spec=URGENT), "--snapshot", file, "-o", "json").stdout
    )
    assert (told["fits"], told["preemptions"][0]["victims"]) == (True, ["default/short"])


def test_a_pod_that_would_preempt_names_the_victims_even_where_its_scheduler_does_not_run(tmp_path: Path) -> None:
    late = trainer("late", gpus=4)
    urgent = structs.replace(late, spec=structs.replace(late.spec, priority=1000, scheduler_name="my-own"))
    items = clusterfiles.node("gpu-a", trainer("one", gpus=3), trainer("two", gpus=3))
    result = run("explain", "pod", "late", "--snapshot", written(tmp_path, [*items, clusterfiles.pod(urgent)]))
    assert result.exit_code == 1
    assert "Does a scheduler named my-own run?" in " ".join(result.stdout.split())
    assert "would go to  gpu-a, once pods there are preempted" in result.stdout
    assert "It would preempt 1 pod of priority 0 on gpu-a" in result.stdout


def test_a_shape_that_never_preempts_evicts_nothing(tmp_path: Path) -> None:
    spec = URGENT | {"preemptionPolicy": "Never"}
    result = run("explain", "shape", "-f", shape(tmp_path, spec=spec), "--snapshot", written(tmp_path, busy()))
    assert result.exit_code == 1
    assert "preempt" not in result.stdout


def test_a_priority_class_beside_the_pod_counts_as_if_it_were_applied(tmp_path: Path) -> None:
    spec = {"containers": [CONTAINER], "priorityClassName": "prod"}
    both = tmp_path / "prod.yaml"
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "prod"}, "value": 1000}
    pod = Path(shape(tmp_path, spec=spec)).read_text(encoding="utf-8")
    both.write_text(f"{json.dumps(kind)}\n---\n{pod}", encoding="utf-8")
    result = run("explain", "shape", "-f", str(both), "--snapshot", written(tmp_path, busy()))
    assert (result.exit_code, result.stderr) == (0, "")
    assert "would preempt 1 pod of priority 0" in result.stdout
    kind["value"] = "high"
    both.write_text(f"{json.dumps(kind)}\n---\n{pod}", encoding="utf-8")
    result = run("explain", "shape", "-f", str(both), "--snapshot", written(tmp_path, busy()))
    assert result.exit_code == 2
    assert "PriorityClass prod" in result.stderr
    assert "value" in result.stderr


def test_a_priority_class_that_a_file_does_not_know_is_said_to_count_as_0(tmp_path: Path) -> None:
    spec = {"containers": [CONTAINER], "priorityClassName": "prod"}
    result = run("explain", "shape", "-f", shape(tmp_path, spec=spec), "--snapshot", written(tmp_path, busy()))
    assert "priority class prod is not known; the priority of its pods counts as 0" in result.stderr


def test_the_reference_flavour_answers_in_its_own_words(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    plugin = {"name": "Numalign", "args": {"flavour": "reference"}}
    profile = {"schedulerName": "numalign", "pluginConfig": [plugin]}
    config.write_text(yaml.safe_dump(CONFIGURATION | {"profiles": [profile]}))
    file = written(tmp_path, [*busy(), clusterfiles.pod(trainer("late", gpus=2))])
    result = run("explain", "pod", "late", "--snapshot", file, "--config", str(config))
    assert result.exit_code == 1
    assert "NodeResourceTopologyMatch refuses: cannot align container" in result.stdout


NAMES = {
    "as it is": (("train-0",), 0),
    "with its namespace": (("default/train-0",), 0),
    "by option": (("train-0", "-n", "default"), 0),
    "elsewhere": (("train-0", "-n", "kube-system"), 2),
    "never seen": (("nobody",), 2),
}


@pytest.mark.parametrize("arguments, code", NAMES.values(), ids=NAMES)
def test_pods_go_by_name_and_namespace(arguments: tuple[str, ...], code: int, tmp_path: Path) -> None:
    result = run("explain", "pod", *arguments, "--snapshot", written(tmp_path, busy()))
    assert result.exit_code == code
    assert ("is not there" in result.stderr) == (code == 2)


def owned(pod: Pod, name: str, uid: str = "rs-uid") -> Pod:
    owner = OwnerReference(kind="ReplicaSet", name=name, uid=uid, controller=True)
    return structs.replace(pod, metadata=structs.replace(pod.metadata, owner_references=(owner,)))


def crowd() -> list[dict[str, Any]]:
    """Two busy nodes, three replicas of a Deployment that wait for them, and a pod of another namespace."""
    set_owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llm", "uid": "d", "controller": True}
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "llm-1", "namespace": "default", "uid": "rs-uid", "ownerReferences": [set_owner]},
    }
    waiting = [owned(seen(trainer(f"llm-1-{letter}", gpus=2)), "llm-1") for letter in "abc"]
    waiting = [structs.replace(pod, metadata=structs.replace(pod.metadata, labels={"app": "llm"})) for pod in waiting]
    other = seen(trainer("lone", gpus=8))
    other = structs.replace(other, metadata=structs.replace(other.metadata, namespace="team-a"))
    return [*busy(), replica_set, *map(clusterfiles.pod, (*waiting, other))]


LISTS = {
    "all that wait": ((), ["llm-1-a", "llm-1-b", "llm-1-c"]),
    "in all namespaces": (("-A",), ["llm-1-a", "llm-1-b", "llm-1-c", "lone"]),
    "in another namespace": (("-n", "team-a"), ["lone"]),
    "by a label": (("-l", "app=llm"), ["llm-1-a", "llm-1-b", "llm-1-c"]),
    "by an owner": (("deploy/llm",), ["llm-1-a", "llm-1-b", "llm-1-c"]),
    "by its ReplicaSet": (("replicaset.apps/llm-1",), ["llm-1-a", "llm-1-b", "llm-1-c"]),
    "by name, as kubectl writes it": (("pod/llm-1-a", "llm-1-b"), ["llm-1-a", "llm-1-b"]),
}


@pytest.mark.parametrize("arguments, names", LISTS.values(), ids=LISTS)
def test_pods_are_chosen_as_kubectl_chooses_them(arguments: tuple[str, ...], names: list[str], tmp_path: Path) -> None:
    file = written(tmp_path, crowd())
    for command in (("why",), ("explain", "pods")):
        result = run(*command, *arguments, "-o", "name", "--snapshot", file)
        assert (result.exit_code, result.stdout.split()) == (1, [f"pod/{name}" for name in names])


def test_many_pods_are_a_line_each_and_replicas_that_are_refused_alike_are_one(tmp_path: Path) -> None:
    lines = run("why", "-A", "--snapshot", written(tmp_path, crowd())).stdout.splitlines()
    assert lines[0].split() == ["NAMESPACE", "POD", "STATE", "NODE", "WHY"]
    assert " ".join(lines[2].split()).startswith("default llm-1-a and 2 more waiting - container main needs 2")
    assert any("team-a" in line and "never fits: container main needs 8 nvidia.com/gpu" in line for line in lines)
    assert lines[-1] == "4 pods: 4 waiting"


def test_pods_that_are_written_alike_are_one_line_without_an_owner_too(tmp_path: Path) -> None:
    pods = [seen(trainer(f"late-{number}", gpus=2)) for number in range(120)]
    lines = run("why", "--snapshot", written(tmp_path, [*busy(), *map(clusterfiles.pod, pods)])).stdout.splitlines()
    assert lines[2].startswith("late-0 and 119 more  waiting")
    assert lines[-1] == "120 pods: 120 waiting"


def test_what_is_no_command_is_a_pod(tmp_path: Path) -> None:
    file = written(tmp_path, busy())
    short, full = (run("explain", *words, "--snapshot", file) for words in (("train-1",), ("pod", "pod/train-1")))
    assert (short.exit_code, short.stdout) == (0, full.stdout)


def test_an_owner_without_pods_and_a_cluster_in_which_none_waits_say_so(tmp_path: Path) -> None:
    file = written(tmp_path, busy())
    nothing = run("why", "sts/db", "--snapshot", file)
    assert (nothing.exit_code, "StatefulSet default/db: owns no pod here" in nothing.stderr) == (2, True)
    assert run("why", "--snapshot", file).stdout == "No pod waits.\n"
    assert json.loads(run("why", "--snapshot", file, "-o", "json").stdout) == []


@pytest.mark.parametrize(
    "name, words",
    [
        ("other/train-0", "did you mean default/train-0?"),
        ("train", "did you mean default/train-0?"),
        ("trian-3", "did you mean default/train-3?"),
        ("etl-7", "the cluster has 4 others"),
    ],
    ids=["in another namespace", "without what was appended to it", "misspelt", "like no other"],
)
def test_a_pod_that_is_not_there_is_taken_for_one_of_a_similar_name_only(name: str, words: str, tmp_path: Path) -> None:
    result = run("explain", "pod", name, "--snapshot", written(tmp_path, busy()))
    assert result.stderr.endswith(f"is not there; {words}\n")


def test_a_cluster_without_pods_is_named_as_such(tmp_path: Path) -> None:
    result = run("explain", "pod", "nobody", "--snapshot", written(tmp_path, clusterfiles.node("gpu-a")))
    assert "Pod default/nobody: is not there; the cluster has no pods" in result.stderr


@pytest.mark.parametrize("fmt", ["json", "yaml"])
def test_the_same_as_values(fmt: str, tmp_path: Path) -> None:
    file = written(tmp_path, [*busy(), clusterfiles.pod(trainer("late", gpus=2))])
    result = run("explain", "pod", "late", "--snapshot", file, "-o", fmt)
    told = json.loads(result.stdout) if fmt == "json" else yaml.safe_load(result.stdout)
    assert (told["fits"], told["pod"]["stage"], told["asked"]["causes"][0]["nodes"]) == (False, "waiting", 2)
    assert told["asked"]["closest"][0]["lacks"][0]["zones"][0] == {"zone": 0, "free": 1, "short": 1}
    assert [each["kind"] for each in told["asked"]["suggestions"]] == ["free-pods", "ask-for-less"]
    assert told["asked"]["answers"] == []


def test_every_node_is_listed_on_request(tmp_path: Path) -> None:
    file = written(tmp_path, [*busy(), clusterfiles.pod(trainer("late", gpus=2))])
    result = run("explain", "pod", "late", "--snapshot", file, "--nodes")
    assert (
        "gpu-a: container main needs 2 nvidia.com/gpu in one NUMA zone, best zone has 1" in result.stdout.splitlines()
    )
    told = json.loads(run("explain", "pod", "late", "--snapshot", file, "--nodes", "-o", "json").stdout)
    assert [each["node"] for each in told["asked"]["answers"]] == ["gpu-a", "gpu-b"]


def test_a_pod_that_is_only_thought_of_finds_a_node(tmp_path: Path) -> None:
    items = [*busy(), *clusterfiles.node("gpu-c")]
    result = run("explain", "shape", "-f", shape(tmp_path), "--snapshot", written(tmp_path, items))
    assert result.exit_code == 0
    assert "would go to  gpu-c; main in zone 0 (predicted)" in result.stdout
    assert "it fits on gpu-c" in result.stdout


def test_copies_are_placed_one_after_the_other_until_one_finds_nothing(tmp_path: Path) -> None:
    file = written(tmp_path, clusterfiles.node("gpu-a"))
    result = run("explain", "shape", "-f", shape(tmp_path), "--replicas", "6", "--snapshot", file)
    assert result.exit_code == 1
    assert "4 of 6 pods find a node: gpu-a 4" in result.stdout
    assert "the pod requests 2 nvidia.com/gpu, none left on a node" in result.stdout
    assert "pod p finds none:" in result.stdout
    assert run("explain", "shape", "-f", shape(tmp_path), "--replicas", "4", "--snapshot", file).exit_code == 0


def test_a_workload_asks_for_as_many_as_it_says_with_its_template_s_labels(tmp_path: Path) -> None:
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    constraint = spread | {"labelSelector": {"matchLabels": {"app": "web"}}}
    spec = {"containers": [CONTAINER], "topologySpreadConstraints": [constraint]}
    pod = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    deployment = {"kind": "Deployment", "apiVersion": "apps/v1", "spec": {"replicas": 2, "template": pod}}
    labels: list[dict[str, Any]] = [{"kubernetes.io/hostname": name} for name in ("a", "b")]
    items = [*clusterfiles.node("a", **labels[0]), *clusterfiles.node("b", **labels[1])]
    result = run("explain", "shape", "-f", shape(tmp_path, **deployment), "--snapshot", written(tmp_path, items))
    assert result.exit_code == 0
    assert "2 of 2 pods find a node: a 1, b 1" in result.stdout


def test_annotations_of_the_pod_count(tmp_path: Path) -> None:
    metadata = {"name": "p", "annotations": {"numalign.io/strictness": "require"}}
    file = written(tmp_path, clusterfiles.node("bare", reported=False))
    result = run("explain", "shape", "-f", shape(tmp_path, metadata=metadata), "--snapshot", file)
    assert result.exit_code == 1
    assert "there is no topology report" in result.stdout
    assert result.stdout.endswith("It would fit on bare without its annotation numalign.io/strictness.\n")


WRONG = {
    "no such file": (("--snapshot", "nowhere.json"), "cannot be read"),
    "two sources": (("--snapshot", "a", "--server", "http://b"), "give one"),
    "nobody there": (("--server", "http://127.0.0.1:1"), "cannot be reached"),
    "no kubeconfig": (("--kubeconfig", "nowhere"), "nowhere"),
}


@pytest.mark.parametrize("arguments, words", WRONG.values(), ids=WRONG)
def test_wrong_use_ends_with_2(arguments: tuple[str, ...], words: str) -> None:
    for command in (("explain", "pod", "p"), ("topology",)):
        result = run(*command, *arguments)
        assert result.exit_code == 2, result.output
        assert words in result.stderr


def test_the_standard_input_is_read_for_one_thing_only() -> None:
    result = run("explain", "shape", "-f", "-", "--snapshot", "-")
    assert result.exit_code == 2
    assert "would both read the standard input" in result.stderr


def test_unreadable_objects_are_reported_and_skipped(tmp_path: Path) -> None:
    odd = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "odd"}, "spec": {"containers": 7}}
    result = run("explain", "pod", "train-0", "--snapshot", written(tmp_path, [*busy(), odd]))
    assert result.exit_code == 0
    assert "warning: " in result.stderr
    assert "odd" in result.stderr


def test_causes_that_read_the_same_are_one_line() -> None:
    causes = [
        CauseOutput(nodes=2, why="too full", plugin="p", cause="a", examples=("n1", "n2")),
        CauseOutput(nodes=2, why="too old", plugin="p", cause="a", examples=("n3", "n4")),
        CauseOutput(nodes=1, why="too full", plugin="p", cause="b", examples=("n5",)),
    ]
    page = formats.Page()
    page.add(explaindraw.causes(page, causes))
    assert [line.split() for line in page.text().splitlines()[2:]] == [
        ["3", "too", "full", "n1,", "n2,", "n5"],
        ["2", "too", "old", "n3,", "n4"],
    ]


def test_zones_that_are_not_listed_are_summed_up_as_a_range() -> None:
    shares = [ZoneLack(zone=zone, free=4 if zone < 9 else 2, short=4 if zone < 9 else 6) for zone in range(12)]
    gpus = [ZoneLack(zone=zone, free=1, short=0) for zone in range(12)]
    lacks = [
        Lacking(resource="cpu", need=8, in_zones=1, most=4, zones=tuple(shares)),
        Lacking(resource="example.com/gpu", need=1, in_zones=1, most=1, zones=tuple(gpus)),
    ]
    page = formats.Page()
    page.add(matrix.lacks(page, lacks))
    assert page.text().splitlines()[-1].split() == ["4", "more", "2", "to", "4", "free", "1", "free"]


def test_of_many_containers_in_a_zone_the_first_are_named() -> None:
    placed = PlacementOutput(
        node="n", source=Source.OBSERVED, containers={f"c{number}": ((0,),) for number in range(10)}
    )
    assert explaindraw.placement(placed) == "c0, c1, c2, c3, c4, c5, c6, c7 and 2 more in zone 0 (observed)"


def test_names_from_outside_do_not_steer_the_terminal(tmp_path: Path) -> None:
    evil = trainer("late", gpus=2)
    evil = structs.replace(evil, spec=structs.replace(evil.spec, scheduler_name="\x1b[31m"))
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "x", "message": "\x1b[31mred\nüber"}]
    told = structs.replace(evil, status=waitingpods.pod("late", {}, {"conditions": conditions}).status)
    result = run("explain", "pod", "late", "--snapshot", written(tmp_path, [*busy(), clusterfiles.pod(told)]))
    assert "\x1b" not in result.stdout
    assert "über" in result.stdout


@pytest.mark.parametrize("width", ["30", "60", "160"])
def test_terminals_of_any_width_are_served(width: str, tmp_path: Path) -> None:
    file = written(tmp_path, [*busy(), clusterfiles.pod(trainer("late", gpus=2))])
    result = run("explain", "pod", "late", "--snapshot", file, TTY_COMPATIBLE="1", COLUMNS=width, TERM="xterm")
    assert "\x1b[" in result.stdout
    assert "would fit" in result.stdout
