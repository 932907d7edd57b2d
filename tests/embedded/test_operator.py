"""What the two custom resources make of a cluster: the acceptance scenarios of the reference operator, on plain
Kubernetes. Numbers in the names and ids are those of the reference's own suites (deploy spec 13.7 to 13.10)."""

from __future__ import annotations

import copy
import itertools
from functools import partial
from typing import Any

import pytest
from msgspec import structs

from numalign.deploy.operator import crds, kinds
from numalign.simulator.trees import Tree
from tests.embedded import operatorstories as stories
from tests.embedded.operatorstories import (
    NAMESPACE,
    OPERATOR,
    OPTIONS,
    SCHEDULER,
    SIX,
    Stage,
    node,
    operator,
    scheduler,
)

WORKERS = ["w-0", "w-1", "w-2"]
TAINT = {"key": "example.com/busy", "value": "val1", "effect": "NoExecute"}
TOLERATED = {"key": "example.com/busy", "operator": "Equal", "value": "val1", "effect": "NoExecute"}
DIGEST = "sha256:" + "a" * 64


def group(pool: str = "worker", **config: Any) -> Tree:
    return {"poolName": pool} | ({"config": config} if config else {})


def pod_spec(daemonset: Tree) -> Tree:
    found: Tree = daemonset["spec"]["template"]["spec"]
    return found


def args(stage: Stage, name: str = "worker") -> list[str]:
    found: list[str] = pod_spec(stage.daemonset(name))["containers"][0]["args"]
    return found


def uids(stage: Stage, component: str = "agent") -> set[str]:
    return {each["metadata"]["uid"] for each in stage.pods(component)}


# 13.7: tolerations of the agents


@pytest.mark.parametrize(
    "toleration",
    [{"key": "a", "operator": "Roughly"}, {"key": "a", "operator": "Exists", "effect": "NoSuchEffect"}],
    ids=["84302", "72862"],
)
def test_a_toleration_that_the_server_refuses_degrades_and_resetting_it_recovers(toleration: Tree) -> None:
    async def plot(stage: Stage) -> None:
        stage.create(operator())
        await stage.available()
        stage.set_spec(OPERATOR, nodeGroups=[group(tolerations=[toleration])])
        assert "Unsupported value" in await stage.degraded("InternalError")
        assert stage.agents() == WORKERS
        stage.set_spec(OPERATOR, nodeGroups=[group()])
        await stage.available()

    stories.told(plot)


def test_84303_a_toleration_is_added_and_removed_and_the_pods_are_made_again_each_time() -> None:
    async def plot(stage: Stage) -> None:
        stage.create(operator())
        await stage.available()
        before = uids(stage)
        stage.set_spec(OPERATOR, nodeGroups=[group(tolerations=[TOLERATED])])
        await stage.available()
        assert TOLERATED in pod_spec(stage.daemonset())["tolerations"]
        between = uids(stage)
        assert not before & between
        stage.set_spec(OPERATOR, nodeGroups=[group()])
        await stage.available()
        assert "tolerations" not in pod_spec(stage.daemonset())
        assert not between & uids(stage)

    stories.told(plot)


def test_72857_a_deleted_daemonset_comes_back_and_without_the_toleration_one_pod_fewer_is_wanted() -> None:
    async def plot(stage: Stage) -> None:
        stage.taint("w-0", TAINT)
        stage.create(operator(group(tolerations=[TOLERATED])))
        await stage.available()
        stage.delete("DaemonSet", "numalign-agent-worker", NAMESPACE)
        await stage.until(lambda: stage.get("DaemonSet", "numalign-agent-worker", NAMESPACE) is not None, 60)
        await stage.available()
        await stage.until(lambda: stage.agents() == WORKERS)
        stage.set_spec(OPERATOR, nodeGroups=[group()])
        await stage.available()
        await stage.until(lambda: stage.agents() == WORKERS[1:])
        assert stage.daemonset()["status"]["desiredNumberScheduled"] == 2

    stories.told(plot)


@pytest.mark.parametrize("who", ["84304", "84305"])
def test_an_agent_leaves_a_node_whose_taint_it_no_longer_tolerates(who: str) -> None:
    async def plot(stage: Stage) -> None:
        stage.taint("w-0", TAINT)
        stage.create(operator(group(tolerations=[TOLERATED])))
        await stage.available()
        assert stage.agents() == WORKERS
        if who == "84304":
            stage.set_spec(OPERATOR, nodeGroups=[group(tolerations=[TOLERATED | {"value": "val2"}])])
        else:
            stage.taint("w-0", TAINT | {"value": "val2"})
        await stage.until(lambda: stage.agents() == WORKERS[1:])
        await stage.available()

    stories.told(plot)


def test_72861_72859_84306_a_taint_evicts_only_with_noexecute_and_keeps_new_pods_away() -> None:
    async def plot(stage: Stage) -> None:
        stage.create(operator())
        await stage.available()
        stage.taint("w-0", TAINT | {"effect": "NoSchedule"})
        await stage.clock.sleep(60)
        assert stage.agents() == WORKERS
        (pod,) = [each for each in stage.pods("agent") if each["spec"]["nodeName"] == "w-0"]
        stage.delete("Pod", pod["metadata"]["name"], NAMESPACE, grace=0)
        await stage.until(lambda: stage.agents() == WORKERS[1:])
        await stage.available()
        stage.taint("w-0")
        await stage.until(lambda: stage.agents() == WORKERS)
        stage.taint("w-0", TAINT)
        await stage.until(lambda: stage.agents() == WORKERS[1:])
        stage.taint("w-0")
        await stage.until(lambda: stage.agents() == WORKERS)
        await stage.available()

    stories.told(plot)


@pytest.mark.parametrize("at_once", [False, True], ids=["72854", "72855"])
def test_a_toleration_brings_an_agent_to_a_tainted_node(at_once: bool) -> None:
    async def plot(stage: Stage) -> None:
        stage.taint("w-0", TAINT)
        stage.create(operator(group(tolerations=[TOLERATED] if at_once else [])))
        await stage.available()
        assert stage.agents() == (WORKERS if at_once else WORKERS[1:])
        stage.set_spec(OPERATOR, nodeGroups=[group(tolerations=[TOLERATED])])
        await stage.until(lambda: stage.agents() == WORKERS)
        await stage.available()

    stories.told(plot)


# 13.8: configuration of the operator


def test_47674_a_second_group_and_another_log_level() -> None:
    async def plot(stage: Stage) -> None:
        stage.create(operator())
        await stage.available()
        stage.set_spec(OPERATOR, nodeGroups=[group(), group("control-plane")], logLevel="Trace")
        await stage.available()
        assert stage.agents() == sorted([*WORKERS, "c-0", "c-1", "c-2"])
        for name in ("worker", "control-plane"):
            found = args(stage, name)
            assert found[found.index("-v") + 1] == "6"
            affinity = pod_spec(stage.daemonset(name))["affinity"]["nodeAffinity"]
            (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
            assert term == {"matchExpressions": [{"key": f"node-role.kubernetes.io/{name}", "operator": "Exists"}]}

    stories.told(plot)


def test_54916_another_scheduler_name_changes_nothing_else() -> None:
    async def plot(stage: Stage) -> None:
        stage.create(scheduler())
        await stage.available(SCHEDULER)
        assert stage.status(SCHEDULER)["schedulerName"] == "topo-aware-scheduler"
        before = stage.deployment()
        stage.set_spec(SCHEDULER, schedulerName="mine")
        await stage.available(SCHEDULER)
        assert stage.status(SCHEDULER)["schedulerName"] == "mine"
        config = stage.get("ConfigMap", "numalign-scheduler", NAMESPACE)
        assert config is not None
        assert '"schedulerName": "mine"' in str(config["data"])
        after = stage.deployment()
        for each in (before, after):
            each["spec"]["template"]["metadata"].pop("annotations")  # the checksum of the configuration
        assert before["spec"] == after["spec"]
        # N6: a field that is taken away has its default again.
        stage.set_spec(SCHEDULER, schedulerName=None)
        await stage.available(SCHEDULER)
        assert stage.status(SCHEDULER)["schedulerName"] == "topo-aware-scheduler"

    stories.told(plot)


def test_pods_that_wait_for_a_former_name_are_named_until_none_is_left() -> None:
    def condition(stage: Stage) -> Tree:
        return stage.conditions(SCHEDULER).get("PodsWaitForFormerName", {})

    async def plot(stage: Stage) -> None:
        stage.create(scheduler())
        await stage.available(SCHEDULER)
        assert not condition(stage)
        for number in range(5):
            spec = {"schedulerName": "topo-aware-scheduler", "containers": [{"name": "a", "image": "a"}]}
            meta = {"name": f"old-{number}", "namespace": "default"}
            stage.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
        stage.set_spec(SCHEDULER, schedulerName="mine")
        await stage.until(lambda: condition(stage).get("status") == "True")
        assert condition(stage)["message"] == (
            "pods wait for topo-aware-scheduler, which this resource no longer serves: "
            "default/old-0, default/old-1, default/old-2 and 2 more; "
            "let them name mine, or run a scheduler of that name"
        )
        await stage.available(SCHEDULER)
        await stage.clock.sleep(120)
        told = [each for each in stage.events() if each["reason"] == "SchedulerRenamed"]
        assert [each["type"] for each in told] == ["Warning"]
        assert await stage.quiet() == []
        for number in range(5):
            stage.delete("Pod", f"old-{number}", "default")
        await stage.until(lambda: condition(stage).get("status") == "False")
        assert stage.status(SCHEDULER)["formerSchedulerNames"] == ["topo-aware-scheduler"]
        # A name that is served again is no former one.
        stage.set_spec(SCHEDULER, schedulerName=None)
        await stage.until(lambda: stage.status(SCHEDULER).get("formerSchedulerNames") == ["mine"])

    stories.told(plot)


def test_84307_84312_the_status_shows_the_effective_configuration_of_each_group() -> None:
    async def plot(stage: Stage) -> None:
        stage.create(operator())
        await stage.available()
        (shown,) = stage.status(OPERATOR)["nodeGroups"]
        defaults = {
            "podsFingerprinting": "EnabledExclusiveResources",
            "infoRefreshMode": "Periodic",
            "infoRefreshPeriod": "10s",
            "infoRefreshPause": "Disabled",
        }
        assert shown == {
            "daemonsets": {"namespace": NAMESPACE, "name": "numalign-agent-worker"},
            "config": defaults,
            "selector": "worker",
            "nodes": 3,
            "ready": 3,
        }
        changed = group("control-plane", infoRefreshPeriod="30s", infoRefreshMode="PeriodicAndEvents")
        stage.set_spec(OPERATOR, nodeGroups=[group(), changed])
        await stage.available()
        first, second = stage.status(OPERATOR)["nodeGroups"]
        assert first == shown
        more = {"infoRefreshPeriod": "30s", "infoRefreshMode": "PeriodicAndEvents"}
        assert second["config"] == defaults | more
        assert "--period=30" in args(stage, "control-plane")
        stage.set_spec(OPERATOR, nodeGroups=[group()])
        await stage.until(lambda: stage.names("DaemonSet") == ["numalign-agent-worker"])
        await stage.available()
        assert stage.status(OPERATOR)["nodeGroups"] == [shown]

    stories.told(plot)


def test_84309_related_objects() -> None:
    async def plot(stage: Stage) -> None:
        stage.create(operator())
        stage.create(scheduler())
        await stage.available()
        await stage.available(SCHEDULER)
        space = {"group": "", "resource": "namespaces", "name": NAMESPACE}
        assert stage.status(OPERATOR)["relatedObjects"] == [
            space,
            {"group": "topology.node.k8s.io", "resource": "noderesourcetopologies", "name": ""},
            {"group": "apps", "resource": "daemonsets", "namespace": NAMESPACE, "name": "numalign-agent-worker"},
        ]
        assert stage.status(OPERATOR)["daemonsets"] == [{"namespace": NAMESPACE, "name": "numalign-agent-worker"}]
        assert stage.status(SCHEDULER)["relatedObjects"] == [
            space,
            {"group": "apps", "resource": "deployments", "namespace": NAMESPACE, "name": "numalign-scheduler"},
        ]

    stories.told(plot)


BAD_GROUPS: dict[str, tuple[list[Tree], str]] = {
    "84311 two specifiers": (
        [{"poolName": "worker", "machineConfigPoolSelector": {"matchLabels": {"a": "b"}}}],
        "spec.nodeGroups[0]: has poolName and machineConfigPoolSelector; exactly one of",
    ),
    "no specifier": ([{}], "spec.nodeGroups[0]: has no specifier"),
    "80823 a duplicate": ([group(), group()], "spec.nodeGroups[1]: is a second group of the name worker"),
    "80823 an empty name": ([group("")], "spec.nodeGroups[0].poolName: is empty"),
    "80912 pools that are not there": (
        [{"machineConfigPoolSelector": {"matchLabels": {"team": "a"}}}],
        "selects MachineConfigPools, which this cluster does not have",
    ),
    "more than eight annotations": (
        [group() | {"annotations": {f"a{n}": "" for n in range(9)}}],
        "spec.nodeGroups[0].annotations: has 9 entries",
    ),
    "a selector of everything": ([{"name": "all", "nodeSelector": {}}], "is empty, which would select every node"),
    "a selector without a name": (
        [{"nodeSelector": {"matchLabels": {"a": "b"}}}],
        "spec.nodeGroups[0].name: is empty",
    ),
    "a bad operator": (
        [{"name": "x", "nodeSelector": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}}],
        'spec.nodeGroups[0].nodeSelector.matchExpressions[0].operator: "Gt" is not one of',
    ),
    "a bad duration": ([group(infoRefreshPeriod="-3s")], '"-3s" is negative; 0s turns it off'),
}


@pytest.mark.parametrize("groups, words", BAD_GROUPS.values(), ids=BAD_GROUPS)
def test_groups_that_make_no_sense_degrade_with_the_field_and_what_is_there_stays(
    groups: list[Tree], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As where the definitions of another project are installed, whose schemas let more through.
    monkeypatch.setattr(crds, "definitions", lambda: [open_ended(each) for each in DEFINITIONS])

    async def plot(stage: Stage) -> None:
        stage.create(operator())
        await stage.available()
        stage.set_spec(OPERATOR, nodeGroups=groups)
        assert words in await stage.degraded("ValidationErrorUnderNodeGroups")
        assert stage.agents() == WORKERS
        assert await stage.quiet(120) == []
        stage.set_spec(OPERATOR, nodeGroups=[group()])
        await stage.available()

    stories.told(plot)


DEFINITIONS = crds.definitions()


def open_ended(definition: Tree) -> Tree:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    (version,) = definition["spec"]["versions"]
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}}
    return {**definition, "spec": {**definition["spec"], "versions": [{**version, "schema": schema}]}}


def test_with_the_definitions_of_the_reference_whose_status_has_fewer_fields_the_operator_is_quiet_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = ("conditions", "daemonsets", "machineconfigpools", "relatedObjects", "deployment", "schedulerName")

    def pruned(definition: Tree) -> Tree:
        made = copy.deepcopy(definition)
        schema = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
        fields = schema["status"]["properties"]
        schema["status"]["properties"] = {name: fields[name] for name in known if name in fields}
        return made

    monkeypatch.setattr(crds, "definitions", lambda: [pruned(each) for each in DEFINITIONS])

    async def plot(stage: Stage) -> None:
        stage.create(operator(group("worker"), group("control-plane")))
        stage.create(scheduler())
        await stage.available()
        await stage.available(SCHEDULER)
        assert "reason" not in stage.status(OPERATOR)
        await stage.clock.sleep(30)
        assert await stage.quiet() == []
        stage.report("w-0")
        stage.set_spec(OPERATOR, nodeGroups=[group("control-plane")])
        await stage.until(lambda: not stage.names("NodeResourceTopology"))
        assert stage.names("DaemonSet") == ["numalign-agent-control-plane"]

    stories.told(plot)


def test_83869_groups_for_control_plane_and_workers_have_an_agent_on_every_node() -> None:
    async def plot(stage: Stage) -> None:
        stage.create(operator(group("control-plane"), group("worker")))
        await stage.available()
        assert stage.agents() == sorted([*WORKERS, "c-0", "c-1", "c-2"])
        assert stage.status(OPERATOR)["nodes"] == "6/6"

    stories.told(plot)


def test_83870_groups_that_share_nodes_are_refused_by_name_and_the_others_go_on() -> None:
    async def plot(stage: Stage) -> None:
        stage.create(operator(group("control-plane"), group("worker")))
        await stage.available()
        for name in ("w-0", "w-2"):
            stage.role(name, "control-plane")
        words = await stage.degraded("OverlappingNodeGroups")
        assert words.startswith("groups control-plane and worker share nodes w-0, w-2;")
        assert stage.names("DaemonSet") == ["numalign-agent-control-plane", "numalign-agent-worker"]
        # A third group comes, whatever is wrong with the two.
        stage.label("w-1", **{"example.com/third": "yes", stories.WORKER: None})
        third = {"name": "third", "nodeSelector": {"matchLabels": {"example.com/third": "yes"}}}
        stage.set_spec(OPERATOR, nodeGroups=[group("control-plane"), group("worker"), third])
        await stage.until(lambda: "numalign-agent-third" in stage.names("DaemonSet"), 60)
        for name in ("w-0", "w-2"):
            stage.role(name, "control-plane", None)
        await stage.available()
        assert stage.agents() == sorted([*WORKERS, "c-0", "c-1", "c-2"])

    stories.told(plot)


def test_84316_a_node_that_moves_to_another_group_gets_that_groups_agent() -> None:
    async def plot(stage: Stage) -> None:
        stage.create(operator(group("worker"), group("fast", infoRefreshPeriod="2s")))
        await stage.available()
        assert "node group fast selects no node" in stage.state(OPERATOR)[2]
        stage.label("w-0", **{stories.WORKER: None, "node-role.kubernetes.io/fast": "yes"})
        await stage.until(lambda: stage.state(OPERATOR) == ("Available", "AsExpected", ""))
        await stage.until(lambda: stage.daemonset("fast")["status"].get("numberReady") == 1)
        assert stage.agents() == WORKERS

    stories.told(plot)


def test_85769_metrics_count_the_work_of_both_controllers_and_the_agents_of_each_group() -> None:
    async def plot(stage: Stage) -> None:
        stage.create(operator())
        await stage.available()
        assert stage.processes[0].now is not None
        text = stage.processes[0].now.controller.metrics.registry.text()
        assert 'workqueue_adds_total{name="numaresourcesoperators/numaresourcesoperator"}' in text
        assert 'numalign_operator_group_ready{group="worker"} 3' in text
        assert (
            'numalign_operator_condition{resource="numaresourcesoperators/numaresourcesoperator",type="Available"} 1'
            in text
        )

    stories.told(plot)


# 13.9: the scheduler, installation


def test_sch_1_another_image_is_rolled_out_in_place() -> None:
    async def plot(stage: Stage) -> None:
        made = stage.create(scheduler(imageSpec="registry.example.com/numalign/scheduler:1"))
        await stage.available(SCHEDULER)
        before = stage.deployment()
        stage.set_spec(SCHEDULER, imageSpec=f"registry.example.com/numalign/scheduler@{DIGEST}")
        await stage.available(SCHEDULER)
        after = stage.deployment()
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        images = [each["spec"]["template"]["spec"]["containers"][0]["image"] for each in (before, after)]
        place = "registry.example.com/numalign/scheduler"
        assert images == [f"{place}:1", f"{place}@{DIGEST}"]
        now = stage.get(SCHEDULER.kind, SCHEDULER.name)
        assert now is not None
        assert now["metadata"]["uid"] == made["metadata"]["uid"]

    stories.told(plot)


def tamperings() -> dict[str, tuple[str, str, str, Tree]]:
    """Kind, namespace, name, and what a client does to it."""
    container = {"name": "scheduler", "image": "evil:1"}
    return {
        "SCH-2 data of a ConfigMap": ("ConfigMap", NAMESPACE, "numalign-scheduler", {"data": {"config.json": "{}"}}),
        "data added to a ConfigMap": ("ConfigMap", NAMESPACE, "numalign-scheduler", {"data": {"more": "x"}}),
        "SCH-2 replicas": ("Deployment", NAMESPACE, "numalign-scheduler", {"spec": {"replicas": 7}}),
        "a paused Deployment": ("Deployment", NAMESPACE, "numalign-scheduler", {"spec": {"paused": True}}),
        "the network of the host": (
            "DaemonSet",
            NAMESPACE,
            "numalign-agent-worker",
            {"spec": {"template": {"spec": {"hostNetwork": True}}}},
        ),
        "containers": (
            "Deployment",
            NAMESPACE,
            "numalign-scheduler",
            {"spec": {"template": {"spec": {"containers": [container]}}}},
        ),
        "N18 rules": ("ClusterRole", "", "numalign-agent", {"rules": []}),
        "N18 subjects": ("ClusterRoleBinding", "", "numalign-scheduler", {"subjects": []}),
        "N18 a Role in another namespace": ("Role", "default", "numalign-agent", {"rules": []}),
        "N18 a Service": ("Service", NAMESPACE, "numalign-scheduler", {"spec": {"type": "NodePort"}}),
        "N18 a policy": (
            "ValidatingAdmissionPolicy",
            "",
            "numalign-agent-own-report",
            {"spec": {"failurePolicy": "Ignore"}},
        ),
        "a NetworkPolicy": ("NetworkPolicy", NAMESPACE, "numalign-agent", {"spec": {"egress": [{}]}}),
        "labels": (
            "DaemonSet",
            NAMESPACE,
            "numalign-agent-worker",
            {"metadata": {"labels": {"app.kubernetes.io/managed-by": None}}},
        ),
        "owners": ("ServiceAccount", NAMESPACE, "numalign-agent", {"metadata": {"ownerReferences": None}}),
    }


WITH_POLICIES = stories.with_values(networkPolicy={"enabled": True})


def test_drift_is_repaired_within_a_minute_whatever_was_changed() -> None:
    async def plot(stage: Stage) -> None:
        stage.create(operator())
        stage.create(scheduler())
        await stage.available()
        await stage.available(SCHEDULER)
        for what, (kind, namespace, name, change) in tamperings().items():
            before = stage.get(kind, name, namespace)
            assert before is not None, what
            stage.edit(kind, name, change, namespace)
            tampered = stage.get(kind, name, namespace)
            assert written_by_people(tampered) != written_by_people(before), what
            await stage.clock.sleep(59)
            assert written_by_people(stage.get(kind, name, namespace)) == written_by_people(before), what
        for kind, namespace, name in list(stage.ours()):
            stage.delete(kind, name, namespace)
        await stage.clock.sleep(60)
        await stage.available()
        await stage.available(SCHEDULER)
        assert set(stage.ours()) == {key for key in stories.wanted(stage) if key[0] != "CustomResourceDefinition"}
        assert await stage.quiet() == []

    stories.told(plot, options=WITH_POLICIES)


def written_by_people(tree: Tree | None) -> Tree:
    assert tree is not None
    meta = {key: tree["metadata"].get(key) for key in ("labels", "ownerReferences")}
    return {key: value for key, value in tree.items() if key not in ("metadata", "status")} | {"metadata": meta}


def test_an_extra_container_is_taken_away_and_a_restart_asked_for_by_hand_is_not_undone() -> None:
    async def plot(stage: Stage) -> None:
        stage.create(operator())
        await stage.available()
        name, kind = "numalign-agent-worker", "DaemonSet"
        pod = pod_spec(stage.daemonset())
        extra = [*pod["containers"], {"name": "stowaway", "image": "evil:1"}]
        stage.edit(kind, name, {"spec": {"template": {"spec": {"containers": extra}}}}, NAMESPACE)
        await stage.clock.sleep(30)
        assert [each["name"] for each in pod_spec(stage.daemonset())["containers"]] == ["agent"]
        restart = {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}
        before = uids(stage)
        stage.edit(kind, name, {"spec": {"template": {"metadata": {"annotations": restart}}}}, NAMESPACE)
        await stage.clock.sleep(60)
        assert stage.daemonset()["spec"]["template"]["metadata"]["annotations"] == restart
        await stage.available()
        assert not before & uids(stage)
        assert await stage.quiet() == []

    stories.told(plot)


def test_sch_3_another_resync_period_shows_in_status_configuration_and_new_pods() -> None:
    async def plot(stage: Stage) -> None:
        stage.create(scheduler())
        await stage.available(SCHEDULER)
        before = uids(stage, "scheduler")
        stage.set_spec(SCHEDULER, cacheResyncPeriod="12s", cacheResyncDetection="Aggressive")
        await stage.available(SCHEDULER)
        assert stage.status(SCHEDULER)["cacheResyncPeriod"] == "12s"
        config = str((stage.get("ConfigMap", "numalign-scheduler", NAMESPACE) or {})["data"])
        assert '"cacheResyncPeriodSeconds": 12' in config
        assert '"foreignPodsDetect": "All"' in config
        assert not before & uids(stage, "scheduler")

    stories.told(plot)


def test_48598_sch_4_sch_5_sch_6_sch_7_replicas_follow_the_nodes_for_them() -> None:
    async def plot(stage: Stage) -> None:
        stage.create(scheduler())
        await stage.available(SCHEDULER)
        hosts = [each["spec"]["nodeName"] for each in stage.pods("scheduler")]
        assert sorted(hosts) == ["c-0", "c-1", "c-2"]  # 48598, SCH-4: near the API server, one on each
        assert stage.deployment()["spec"]["template"]["spec"]["topologySpreadConstraints"]
        before = stage.deployment()["metadata"]
        stage.set_spec(SCHEDULER, replicas=3)  # SCH-6
        await stage.available(SCHEDULER)
        stage.set_spec(SCHEDULER, replicas=None)
        await stage.available(SCHEDULER)
        after = stage.deployment()["metadata"]
        assert (before["uid"], before["generation"]) == (after["uid"], after["generation"])
        for replicas in (0, 1):  # SCH-5, SCH-7
            stage.set_spec(SCHEDULER, replicas=replicas)
            await stage.available(SCHEDULER)
            await stage.until(partial(has_pods, stage, replicas))
            assert stage.status(SCHEDULER)["replicas"] == f"{replicas}/{replicas}"
        stage.set_spec(SCHEDULER, replicas=None)
        await stage.available(SCHEDULER)
        assert len(stage.pods("scheduler")) == 3

    stories.told(plot)


def has_pods(stage: Stage, count: int) -> bool:
    return len(stage.pods("scheduler")) == count


def test_one_replica_with_fewer_than_three_nodes_for_it_and_workers_where_the_control_plane_is_elsewhere() -> None:
    async def one(stage: Stage) -> None:
        stage.create(scheduler())
        await stage.available(SCHEDULER)
        assert stage.deployment()["spec"]["replicas"] == 1

    async def three(stage: Stage) -> None:
        stage.create(scheduler())
        await stage.available(SCHEDULER)
        assert stage.deployment()["spec"]["replicas"] == 3

    stories.told(one, [node("c-0", "control-plane"), *(node(f"w-{n}") for n in range(4))])
    stories.told(three, [node(f"w-{n}") for n in range(4)])


def test_13_10_8_more_replicas_than_nodes_degrade_until_the_node_is_back() -> None:
    async def plot(stage: Stage) -> None:
        stage.create(scheduler(replicas=3))
        await stage.available(SCHEDULER)
        stage.role("c-2", "control-plane", None)
        words = await stage.degraded("InternalError", SCHEDULER)
        assert words == "spec.replicas: 3 replicas need as many control-plane nodes, and the cluster has 2"
        stage.role("c-2", "control-plane")
        await stage.available(SCHEDULER)

    stories.told(plot)


def test_sch_9_an_image_that_the_policy_refuses_degrades_and_the_deployment_stays() -> None:
    trusting = structs.replace(OPTIONS, image_policy="trusted", trusted=frozenset({DIGEST}))

    async def plot(stage: Stage) -> None:
        stage.create(scheduler())
        await stage.available(SCHEDULER)
        before = stage.deployment()["spec"]
        for image, words in {"x.io/a:1": "has no digest", f"x.io/a@sha256:{'b' * 64}": "not one that"}.items():
            stage.set_spec(SCHEDULER, imageSpec=image)
            assert words in await stage.degraded("InvalidSchedulerImage", SCHEDULER)
            assert stage.deployment()["spec"] == before
        stage.set_spec(SCHEDULER, imageSpec=f"x.io/a@{DIGEST}")
        await stage.available(SCHEDULER)

    stories.told(plot, options=trusting)

    async def anything(stage: Stage) -> None:
        stage.create(scheduler(imageSpec="x.io/a:1"))
        await stage.available(SCHEDULER)

    stories.told(anything)


def test_ins_1_47587_an_agent_image_is_refused_where_the_policy_says_so_and_used_elsewhere() -> None:
    async def refused(stage: Stage) -> None:
        stage.create(operator())
        await stage.available()
        before = stage.daemonset()["spec"]
        stage.set_spec(OPERATOR, imageSpec="x.io/agent:1")
        assert "has no digest" in await stage.degraded("CustomUserImage")
        assert stage.daemonset()["spec"] == before

    async def used(stage: Stage) -> None:
        stage.create(operator())
        await stage.available()
        before = uids(stage)
        stage.set_spec(OPERATOR, imageSpec="x.io/agent:1")
        await stage.available()
        assert pod_spec(stage.daemonset())["containers"][0]["image"] == "x.io/agent:1"
        assert not before & uids(stage)

    stories.told(refused, options=structs.replace(OPTIONS, image_policy="digest"))
    stories.told(used)


def test_sch_8_a_replica_that_fits_nowhere_shows_and_is_degraded_after_ten_minutes() -> None:
    async def plot(stage: Stage) -> None:
        stage.create(scheduler(replicas=3))
        await stage.available(SCHEDULER)
        for each in SIX:
            stage.edit("Node", each.name, {"spec": {"unschedulable": True}})
        pod = stage.pods("scheduler")[0]["metadata"]["name"]
        stage.delete("Pod", pod, NAMESPACE, grace=0)
        # N7: operands are watched after they were available.
        await stage.until(lambda: stage.state(SCHEDULER)[:2] == ("Progressing", "DeploymentIsUpdating"), 60)
        assert "2 of 3 replicas available" in stage.state(SCHEDULER)[2]
        why = "is on no node: Unschedulable: 0/6 nodes are available: 6 node(s) were unschedulable"
        await stage.until(lambda: why in stage.state(SCHEDULER)[2], 60)
        assert "2 of 3" in await stage.degraded("SchedulerNotReady", SCHEDULER, 660)
        await stage.clock.sleep(120)
        assert stage.state(SCHEDULER)[0] == "Degraded"
        for each in SIX:
            stage.edit("Node", each.name, {"spec": {"unschedulable": False}})
        await stage.available(SCHEDULER)

    stories.told(plot)


def test_sch_10_ins_2_uni_1_deleting_the_resources_leaves_nothing_and_new_ones_start_afresh() -> None:
    async def plot(stage: Stage) -> None:
        stage.create(operator())
        stage.create(scheduler())
        await stage.available()
        await stage.available(SCHEDULER)
        for custom in (SCHEDULER, OPERATOR):
            stage.delete(custom.kind, custom.name)
            assert stage.get(custom.kind, custom.name) is None  # at once: there is no finalizer
        await stage.until(lambda: not stage.ours())
        assert not stage.names("DaemonSet")
        await stage.until(lambda: not stage.pods("agent"))
        stage.create(operator(spec={"logLevel": "Trace"}))
        await stage.available()
        found = args(stage)
        assert found[found.index("-v") + 1] == "6"

    stories.told(plot)


def test_a_resource_made_again_at_once_waits_for_what_the_old_one_left_and_then_has_its_own() -> None:
    async def plot(stage: Stage) -> None:
        stage.create(operator())
        await stage.available()
        old = stage.daemonset()["metadata"]["uid"]
        stage.delete(OPERATOR.kind, OPERATOR.name)
        made = stage.create(operator())
        await stage.available()
        new = stage.daemonset()["metadata"]
        assert new["uid"] != old
        assert [each["uid"] for each in new["ownerReferences"]] == [made["metadata"]["uid"]]

    stories.told(plot)


# 13.10: behaviour of the controllers


@pytest.mark.parametrize(
    "tree, custom",
    [(operator(name="other"), OPERATOR), (scheduler(name="other"), SCHEDULER)],
    ids=["operator", "scheduler"],
)
def test_13_10_1_an_object_of_another_name_is_degraded_and_makes_nothing(tree: Tree, custom: kinds.Custom) -> None:
    async def plot(stage: Stage) -> None:
        stage.create(tree)
        await stage.clock.sleep(30)
        status = (stage.get(custom.kind, "other") or {})["status"]
        assert status["reason"] == f"Incorrect{custom.kind}ResourceName"
        (degraded,) = [each for each in status["conditions"] if each["type"] == "Degraded"]
        assert degraded["status"] == "True"
        assert custom.name in degraded["message"]
        assert not stage.ours()

    stories.told(plot)


def test_13_10_2_paused_drift_stays_and_is_repaired_afterwards() -> None:
    async def plot(stage: Stage) -> None:
        stage.create(operator())
        await stage.available()
        stage.annotate(OPERATOR, kinds.PAUSE, "enabled")
        await stage.until(lambda: stage.conditions(OPERATOR)["Paused"]["status"] == "True")
        assert stage.state(OPERATOR)[0] == "Available"  # as it was
        stage.edit("ClusterRole", "numalign-agent", {"rules": []})
        stage.delete("DaemonSet", "numalign-agent-worker", NAMESPACE)
        assert await stage.quiet() == []
        assert stage.names("DaemonSet") == []
        stage.annotate(OPERATOR, kinds.PAUSE, None)
        await stage.available()
        await stage.until(lambda: stage.agents() == WORKERS)
        assert (stage.get("ClusterRole", "numalign-agent") or {})["rules"]
        assert stage.conditions(OPERATOR)["Paused"]["status"] == "False"

    stories.told(plot)


def test_13_10_3_a_daemonset_of_the_resource_that_is_not_wanted_goes_and_one_of_others_stays() -> None:
    async def plot(stage: Stage) -> None:
        first = stage.create(operator())
        await stage.available()
        owner = {
            "apiVersion": kinds.API_VERSION,
            "kind": OPERATOR.kind,
            "name": OPERATOR.name,
            "uid": first["metadata"]["uid"],
            "controller": True,
        }
        ours = stage.daemonset()
        for name, owners in {"dangling": [owner], "unowned": []}.items():
            made: Tree = {
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "metadata": {
                    "name": name,
                    "namespace": NAMESPACE,
                    "labels": ours["metadata"]["labels"],
                    "ownerReferences": owners,
                },
                "spec": {
                    "selector": {"matchLabels": {"a": name}},
                    "template": {
                        "metadata": {"labels": {"a": name}},
                        "spec": {"containers": [{"name": "a", "image": "a"}], "nodeSelector": {"no": "where"}},
                    },
                },
            }
            stage.create(made)
        await stage.until(lambda: stage.names("DaemonSet") == ["numalign-agent-worker", "unowned"])
        await stage.available()

    stories.told(plot)


REPORTS = "noderesourcetopologies.topology.node.k8s.io"


def test_13_10_4_n19_the_definition_of_the_reports_is_kept_unless_it_is_the_clusters_and_outlives_the_resource() -> (
    None
):
    def tamper(stage: Stage) -> None:
        stage.edit("CustomResourceDefinition", REPORTS, {"spec": {"names": {"shortNames": ["tampered"]}}})

    def names(stage: Stage) -> list[str]:
        found: list[str] = (stage.get("CustomResourceDefinition", REPORTS) or {})["spec"]["names"]["shortNames"]
        return found

    async def plot(stage: Stage) -> None:
        stage.create(operator())
        await stage.available()
        tamper(stage)
        await stage.until(lambda: names(stage) == ["node-res-topo"], 60)
        stage.annotate(OPERATOR, kinds.REPORT_DEFINITION, "cluster")
        await stage.clock.sleep(5)
        tamper(stage)
        await stage.clock.sleep(120)
        assert names(stage) == ["tampered"]
        stage.annotate(OPERATOR, kinds.REPORT_DEFINITION, None)
        await stage.until(lambda: names(stage) == ["node-res-topo"], 60)
        stage.delete(OPERATOR.kind, OPERATOR.name)
        await stage.clock.sleep(120)
        assert names(stage) == ["node-res-topo"]

    stories.told(plot, own_definition=True)


def test_the_definition_of_another_project_is_used_as_it_is() -> None:
    async def plot(stage: Stage) -> None:
        before = stage.get("CustomResourceDefinition", REPORTS)
        stage.create(operator())
        await stage.available()
        assert stage.get("CustomResourceDefinition", REPORTS) == before

    stories.told(plot)


def test_13_10_5_the_selector_of_the_references_own_samples_names_a_pool() -> None:
    label = "pools.operator.machineconfiguration.openshift.io/worker"

    async def plot(stage: Stage) -> None:
        stage.create(operator({"machineConfigPoolSelector": {"matchLabels": {label: ""}}}))
        await stage.available()
        assert stage.agents() == WORKERS
        assert [each["name"] for each in stage.status(OPERATOR)["machineconfigpools"]] == ["worker"]

    stories.told(plot)


def test_13_10_7_n10_the_reports_of_a_removed_group_go_after_its_agents_and_those_of_other_publishers_stay() -> None:
    async def plot(stage: Stage) -> None:
        stage.create(operator(group("worker"), group("control-plane")))
        await stage.available()
        for name in ("w-0", "w-1", "c-0"):
            stage.report(name)
        stage.report("w-2", signed=False)
        stage.set_spec(OPERATOR, nodeGroups=[group("control-plane")])
        await stage.until(lambda: stage.names("NodeResourceTopology") == ["c-0", "w-2"])
        assert stage.agents() == ["c-0", "c-1", "c-2"]
        await stage.until(lambda: "removedNodeGroups" not in stage.status(OPERATOR))
        await stage.available()
        assert await stage.quiet() == []

    stories.told(plot)


def test_reports_go_with_the_nodes_that_a_changed_group_leaves_and_stay_where_the_annotation_says_so() -> None:
    def zone(value: str) -> Tree:
        return {"name": "mine", "nodeSelector": {"matchLabels": {"zone": value}}}

    async def plot(stage: Stage) -> None:
        for name, value in zip(WORKERS, ("a", "a", "b"), strict=True):
            stage.label(name, zone=value)
        stage.create(operator(zone("a")))
        await stage.available()
        for name in WORKERS:
            stage.report(name)
        stage.set_spec(OPERATOR, nodeGroups=[zone("b")])
        await stage.until(lambda: stage.names("NodeResourceTopology") == ["w-2"])
        await stage.available()
        stage.annotate(OPERATOR, kinds.KEEP_REPORTS, "enabled")
        stage.set_spec(OPERATOR, nodeGroups=[])
        await stage.until(lambda: not stage.names("DaemonSet"))
        await stage.available()
        await stage.clock.sleep(120)
        assert stage.names("NodeResourceTopology") == ["w-2"]

    stories.told(plot)


def test_13_10_10_n4_n5_each_setting_of_a_group_changes_its_own_option_and_nothing_else() -> None:
    settings: dict[str, tuple[Tree, list[str], list[str]]] = {
        "pause": ({"infoRefreshPause": "Enabled"}, ["--no-publish"], []),
        "no fingerprint": ({"podsFingerprinting": "Disabled"}, ["--no-fingerprint"], []),
        "all pods": ({"podsFingerprinting": "Enabled"}, [], []),
        "events": ({"infoRefreshMode": "Events"}, ["--period=300"], ["--period=10"]),
        "no timer": ({"infoRefreshPeriod": "0s"}, ["--period=300"], ["--period=10"]),
        "a long timer": ({"infoRefreshPeriod": "1h"}, ["--period=300"], ["--period=10"]),
        "a short timer": ({"infoRefreshPeriod": "10ms"}, ["--period=1"], ["--period=10"]),
    }

    async def plot(stage: Stage) -> None:
        stage.create(operator())
        await stage.available()
        plain = stage.daemonset()["spec"]["template"]
        for name, (config, come, go) in settings.items():
            stage.set_spec(OPERATOR, nodeGroups=[group(**config)])
            await stage.until(lambda: stage.state(OPERATOR)[0] == "Available")
            changed = stage.daemonset()["spec"]["template"]
            before, after = (set(each["spec"]["containers"][0].pop("args")) for each in (copy.deepcopy(plain), changed))
            assert (after - before, before - after) == (set(come), set(go)), name
            without = copy.deepcopy(plain)
            without["spec"]["containers"][0].pop("args")
            assert changed == without, name

    stories.told(plot)


def test_13_10_11_equal_settings_give_equal_checksums_and_another_setting_rolls_the_pods() -> None:
    async def plot(stage: Stage) -> None:
        stage.create(scheduler(schedulerName="a"))
        await stage.available(SCHEDULER)

        def checksum() -> str:
            found: str = stage.deployment()["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
            return found

        seen = []
        for name in ("a", "b", "a"):
            stage.set_spec(SCHEDULER, schedulerName=name)
            await stage.available(SCHEDULER)
            seen.append((checksum(), uids(stage, "scheduler")))
        assert seen[0][0] == seen[2][0] != seen[1][0]
        assert not any(one & other for (_, one), (_, other) in itertools.pairwise(seen))

    stories.told(plot)


def test_13_10_12_transition_times_change_only_when_a_condition_flips() -> None:
    async def plot(stage: Stage) -> None:
        stage.create(operator())
        await stage.available()
        first = {name: each["lastTransitionTime"] for name, each in stage.conditions(OPERATOR).items()}
        await stage.clock.sleep(100)
        stage.set_spec(OPERATOR, nodeGroups=[group(), group("nowhere")])
        await stage.until(lambda: "selects no node" in stage.state(OPERATOR)[2])
        second = stage.conditions(OPERATOR)
        assert {each["observedGeneration"] for each in second.values()} == {2}
        assert second["Degraded"]["lastTransitionTime"] == first["Degraded"]
        assert second["Paused"]["lastTransitionTime"] == first["Paused"]

    stories.told(plot)


def test_events_tell_of_changes_of_the_state_and_are_not_repeated() -> None:
    async def plot(stage: Stage) -> None:
        stage.create(operator())
        await stage.available()
        stage.set_spec(OPERATOR, nodeGroups=[group(tolerations=[{"key": "a", "operator": "Roughly"}])])
        await stage.degraded("InternalError")
        await stage.clock.sleep(1200)  # fails again and again
        stage.set_spec(OPERATOR, nodeGroups=[group()])
        await stage.available()
        await stage.clock.sleep(30)
        told = [each for each in stage.events() if each["involvedObject"]["kind"] == OPERATOR.kind]
        assert [(each["type"], each["reason"]) for each in told] == [
            ("Normal", "DaemonSetIsUpdating"),
            ("Normal", "Available"),
            ("Warning", "InternalError"),
            ("Normal", "Available"),
        ]

    stories.told(plot)


def test_an_object_of_somebody_else_is_not_taken() -> None:
    async def plot(stage: Stage) -> None:
        account = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "numalign-agent", "namespace": NAMESPACE},
        }
        stage.create(account)
        stage.create(operator())
        words = await stage.degraded("InternalError")
        assert words.startswith(f"ServiceAccount {NAMESPACE}/numalign-agent belongs to another manager; delete it")
        stage.delete("ServiceAccount", "numalign-agent", NAMESPACE)
        await stage.available()

    stories.told(plot)


def test_without_groups_there_are_no_agents_and_nothing_is_wrong() -> None:
    async def plot(stage: Stage) -> None:
        stage.create(operator())
        await stage.available()
        stage.set_spec(OPERATOR, nodeGroups=[])
        await stage.until(lambda: not stage.ours())
        await stage.available()
        assert stage.status(OPERATOR)["nodes"] == "0/0"

    stories.told(plot)


def test_a_second_replica_takes_over_when_the_leader_dies() -> None:
    async def plot(stage: Stage) -> None:
        stage.create(operator())
        await stage.available()
        (leader,) = [each for each in stage.processes if each.now is not None and each.now.leads()]
        leader.kill()
        stage.delete("DaemonSet", "numalign-agent-worker", NAMESPACE)
        await stage.until(lambda: stage.get("DaemonSet", "numalign-agent-worker", NAMESPACE) is not None, 60)

    stories.told(plot, replicas=2)
