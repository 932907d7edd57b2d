"""The deployer makes a cluster what a rendered set says, tells what it did, and never leaves the user guessing."""

from __future__ import annotations

import copy

import pytest

from numalign.api.errors import BadObject
from numalign.deploy.apply import applying, waiting
from numalign.deploy.apply.applying import Refused, Stopped
from numalign.deploy.apply.inventory import Installation
from numalign.deploy.apply.objects import Tree
from numalign.kube import errors
from numalign.kube.request import Request
from numalign.simulator import virtualtime
from numalign.simulator.apiserver.storage import resources
from tests.deploy import sites
from tests.deploy.sites import CRD, HERE, Interrupted, site

UNCHANGED = {"unchanged"}


def test_everything_is_created_in_the_order_of_dependency() -> None:
    async def story() -> None:
        async with site(without_crd=True) as here:
            changes = await here.apply(sites.objects())
            assert {each.action for each in changes} == {"created"}
            kinds = [each.object.kind for each in changes]
            assert kinds[:3] == ["Namespace", "CustomResourceDefinition", "ServiceAccount"]
            assert kinds[-2:] == ["Deployment", "DaemonSet"]
            assert len(await here.inventory()) == len(changes) == 11

    sites.played(story)


def test_a_second_run_changes_nothing_and_writes_nothing() -> None:
    async def story() -> None:
        async with site(without_crd=True) as here:
            await here.apply(sites.objects())
            await here.sleep(30.0)
            before = versions(here)
            assert set(sites.actions(await here.apply(sites.objects())).values()) == UNCHANGED
            assert versions(here) == before

    sites.played(story)


def versions(here: sites.Site) -> list[str]:
    """Of objects that only the deployer writes."""
    written = (resources.CONFIGMAPS, resources.CLUSTERROLES, resources.SERVICEACCOUNTS, resources.NAMESPACES)
    return [each["metadata"]["resourceVersion"] for resource in written for each in here.api.list(resource).items]


def test_the_agents_namespace_lets_its_pods_mount_the_host_and_is_marked_as_ours() -> None:
    async def story() -> None:
        async with site() as here:
            await here.apply(sites.objects(), adopt=True)
            found = here.get(resources.NAMESPACES, HERE.namespace)
            assert found is not None
            assert found["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"
            assert found["metadata"]["annotations"]["numalign.io/created-by"] == "numalign-deployer"

    sites.played(story)


def test_a_namespace_that_was_there_is_used_as_it_is() -> None:
    async def story() -> None:
        async with site() as here:
            tree = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HERE.namespace}}
            here.api.create(resources.NAMESPACES, tree, manager="somebody")
            assert sites.actions(await here.apply(sites.objects()))[f"Namespace/{HERE.namespace}"] == "skipped"
            found = here.get(resources.NAMESPACES, HERE.namespace)
            assert found is not None
            assert "numalign.io/created-by" not in found["metadata"].get("annotations", {})

    sites.played(story)


def test_what_was_edited_by_hand_is_put_back_and_named() -> None:
    async def story() -> None:
        async with site() as here:
            await here.apply(sites.objects())
            place = (resources.DEPLOYMENTS, "numalign-scheduler", HERE.namespace)
            here.edit(*place, {"spec": {"replicas": 7}})
            here.edit(resources.CONFIGMAPS, "numalign-scheduler", HERE.namespace, {"data": {"scheduler.yaml": "x"}})
            changed = [each for each in await here.diff(sites.objects()) if each.action != "unchanged"]
            assert [each.object.kind for each in changed if each.action == "configured"] == ["ConfigMap", "Deployment"]
            replicas = changed[-1].fields[0]
            assert (replicas.field, replicas.old, replicas.new) == ("spec.replicas", 7, 2)
            assert sites.actions(await here.apply(sites.objects()))["Deployment/numalign-scheduler"] == "configured"
            found = here.get(*place)
            assert found is not None
            assert found["spec"]["replicas"] == 2

    sites.played(story)


def test_an_object_that_was_deleted_is_created_again() -> None:
    async def story() -> None:
        async with site() as here:
            await here.apply(sites.objects())
            here.api.delete(resources.CLUSTERROLES, "numalign-agent")
            changes = sites.actions(await here.apply(sites.objects()))
            assert changes.pop("ClusterRole/numalign-agent") == "created"
            assert set(changes.values()) == {"unchanged", "skipped"}

    sites.played(story)


def test_a_diff_changes_nothing() -> None:
    async def story() -> None:
        async with site(without_crd=True) as here:
            before = here.left()
            for by_server in (True, False):
                changes = await here.diff(sites.objects(), by_server=by_server)
                assert {each.action for each in changes} == {"created"}
            assert here.left() == before

    sites.played(story)


def test_a_diff_without_the_servers_dry_run_compares_what_is_written() -> None:
    async def story() -> None:
        async with site() as here:
            await here.apply(sites.objects())
            changes = await here.diff(sites.objects(), by_server=False)
            assert not applying.is_different(changes), changes
            wanted = sites.objects()
            wanted[0]["spec"]["template"]["spec"]["containers"][0]["image"] = "numalign/scheduler:1.3.0"
            changes = await here.diff(wanted, by_server=False)
            assert [each.object.kind for each in changes if each.action == "configured"] == ["Deployment"]

    sites.played(story)


def test_what_left_the_set_is_pruned_and_nothing_else() -> None:
    async def story() -> None:
        async with site() as here:
            await here.apply(sites.objects())
            here.api.create(resources.SERVICEACCOUNTS, account("stranger"), manager="somebody")
            less = [each for each in sites.objects() if each["metadata"]["name"] != "numalign-agent"]
            assert [each.action for each in await here.diff(less)].count("pruned") == 4
            changes = sites.actions(await here.apply(less))
            assert [name for name, action in changes.items() if action == "pruned"] == [
                "DaemonSet/numalign-agent",
                "ClusterRoleBinding/numalign-agent",
                "ClusterRole/numalign-agent",
                "ServiceAccount/numalign-agent",
            ]
            assert "ServiceAccount numalign-system/stranger" in here.left()
            assert not [each for each in await here.inventory() if each.name == "numalign-agent"]

    sites.played(story)


def account(name: str) -> Tree:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": HERE.namespace}}


def test_a_definition_that_left_the_set_stays_because_the_reports_do() -> None:
    async def story() -> None:
        async with site(without_crd=True) as here:
            await here.apply(sites.objects())
            less = [each for each in sites.objects() if each["kind"] != "CustomResourceDefinition"]
            (kept,) = [each for each in await here.apply(less) if each.action == "kept"]
            assert kept.object == CRD
            assert "CustomResourceDefinition noderesourcetopologies.topology.node.k8s.io" in here.left()

    sites.played(story)


def test_an_object_that_another_tool_took_over_is_not_pruned() -> None:
    async def story() -> None:
        async with site() as here:
            await here.apply(sites.objects())
            name = "numalign-agent"
            found = here.get(resources.CLUSTERROLES, name)
            assert found is not None
            here.api.delete(resources.CLUSTERROLES, name)
            here.api.create(resources.CLUSTERROLES, {**found, "metadata": {"name": name}}, manager="somebody")
            less = [each for each in sites.objects() if each["metadata"]["name"] != name]
            changes = sites.actions(await here.apply(less))
            assert changes["ClusterRole/numalign-agent"] == "kept"

    sites.played(story)


def test_a_foreign_definition_is_used_as_it_is_and_adopted_only_when_asked() -> None:
    async def story() -> None:
        async with site() as here:
            (skipped,) = [each for each in await here.apply(sites.objects()) if each.action == "skipped"]
            assert skipped.object == CRD
            assert "used as it is" in skipped.why
            assert CRD not in await here.inventory()
            assert (
                sites.actions(await here.apply(sites.objects(), adopt=True))[f"{CRD.kind}/{CRD.name}"] == "configured"
            )
            assert CRD in await here.inventory()

    sites.played(story)


def test_a_foreign_definition_that_lacks_our_version_is_refused() -> None:
    async def story() -> None:
        async with site(0) as here:
            wanted = sites.objects()
            wanted[-1]["spec"]["versions"].append(copy.deepcopy(wanted[-1]["spec"]["versions"][-1]))
            wanted[-1]["spec"]["versions"][-1] |= {"name": "v1", "storage": False}
            with pytest.raises(Refused, match=r"does not serve v1; give --adopt to replace it"):
                await here.apply(wanted)

    sites.played(story)


def test_a_newer_definition_of_ours_is_not_downgraded() -> None:
    async def story() -> None:
        async with site(without_crd=True) as here:
            newer = sites.objects()
            newer[-1]["metadata"]["labels"]["app.kubernetes.io/version"] = "1.10.0"
            await here.apply(newer)
            (skipped,) = [each for each in await here.apply(sites.objects()) if each.action == "skipped"]
            assert "numalign 1.10.0 installed it" in skipped.why

    sites.played(story)


def test_an_object_of_somebody_else_stops_the_run_before_it_began() -> None:
    async def story() -> None:
        async with site() as here:
            foreign = sites.role("numalign-agent", "agent")[0]
            foreign["metadata"]["annotations"] = {"meta.helm.sh/release-name": "other"}
            here.api.create(resources.CLUSTERROLES, foreign, manager="helm")
            before = here.left()
            with pytest.raises(Refused, match=r"ClusterRole numalign-agent: .* the Helm release other; give --adopt"):
                await here.apply(sites.objects())
            assert here.left() == before
            changes = await here.apply(sites.objects(), adopt=True)
            assert [each.why for each in changes if each.object.kind == "ClusterRole"] == [
                "taken over from the Helm release other",
                "",
            ]

    sites.played(story)


def test_a_field_that_another_tool_applies_is_not_taken_unless_asked() -> None:
    async def story() -> None:
        async with site() as here:
            await here.apply(sites.objects())
            meta = {"name": "numalign-scheduler", "namespace": HERE.namespace}
            theirs = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": {"replicas": 5}}
            await other(here, theirs)
            with pytest.raises(Refused, match=r"argocd also applies spec.replicas, with another value; .*--force-conf"):
                await here.apply(sites.objects())
            assert sites.actions(await here.apply(sites.objects(), force_conflicts=True))[
                "Deployment/numalign-scheduler"
            ]
            found = here.get(resources.DEPLOYMENTS, "numalign-scheduler", HERE.namespace)
            assert found is not None
            assert found["spec"]["replicas"] == 2

    sites.played(story)


async def other(here: sites.Site, tree: Tree) -> None:
    mine, here.server.manager = here.server.manager, "argocd"
    await here.server.apply(tree, force=True)
    here.server.manager = mine


def test_lacking_rights_are_all_named_before_anything_is_touched() -> None:
    async def story() -> None:
        async with site() as here:
            before = here.left()
            allowed = here.server.may

            async def may(right: object) -> bool:
                return "cluster" not in str(right) and await allowed(right)  # type: ignore[arg-type]

            here.server.may = may  # type: ignore[method-assign]
            with pytest.raises(Refused) as met:
                await here.apply(sites.objects())
            assert "you may not create clusterroles.rbac.authorization.k8s.io; ask" in str(met.value)
            assert len(met.value.problems) == 6
            assert here.left() == before

    sites.played(story)


def test_an_object_that_the_server_would_refuse_stops_the_run_before_it_began() -> None:
    async def story() -> None:
        async with site() as here:
            await here.apply(sites.objects())
            worse = sites.objects()
            worse[0]["spec"]["replicas"] = -1
            worse[1]["spec"]["selector"] = {"matchLabels": {"app": "another"}}
            worse[6]["metadata"]["labels"]["bad label"] = "x"
            here.calls.clear()
            with pytest.raises(Refused) as met:
                await here.apply(worse)
            assert len(met.value.problems) == 3, met.value.problems
            assert not [each for each in here.calls if sites.writes(each)]

    sites.played(story)


def test_rights_that_are_lost_in_the_middle_stop_the_run_and_the_next_one_continues() -> None:
    async def story() -> None:
        async with site() as here:

            def gate(request: Request) -> None:
                if sites.writes(request) and "clusterrolebindings" in request.path:
                    raise sites.forbidden(request)

            here.gate = gate
            with pytest.raises(Stopped, match="403 Forbidden: not for you; run the command again to continue") as met:
                await here.apply(sites.objects())
            assert "ClusterRole/numalign-scheduler" in sites.actions(list(met.value.changes))
            here.gate = lambda request: None
            changes = sites.actions(await here.apply(sites.objects()))
            assert changes["ClusterRole/numalign-scheduler"] == "unchanged"
            assert changes["Deployment/numalign-scheduler"] == "created"

    sites.played(story)


def test_a_run_that_ends_at_any_call_is_completed_by_the_next_one_and_leaves_no_orphan() -> None:
    """Also where the second run has another set: what the first one made and the second does not want is pruned."""

    async def story(ends_at: int) -> bool:
        async with site(without_crd=True) as here:
            countdown = iter(range(ends_at, -1, -1))

            def gate(request: Request) -> None:
                if sites.writes(request) and next(countdown) == 0:
                    raise Interrupted

            here.gate = gate
            with pytest.raises(Interrupted):
                await here.apply(sites.objects())
            here.gate = lambda request: None
            less = [each for each in sites.objects() if each["metadata"]["name"] != "numalign-agent"]
            await here.apply(less)
            assert not [name for name in here.left() if name.endswith("numalign-agent")]
            assert not applying.is_different(await here.diff(less))
            return True

    assert all(virtualtime.run(story(each)) for each in range(12))


def test_two_deployers_at_once_do_not_lose_each_others_objects() -> None:
    async def story() -> None:
        async with site() as here:
            await here.apply(sites.objects())
            plan = await applying.plan_for(here.server, HERE, sites.objects()[1:], applying.ApplyOptions())
            less = [each for each in sites.objects() if each["metadata"]["name"] != "numalign-agent"]
            await here.apply(less)
            with pytest.raises(Stopped, match="another deployer is at work"):
                await applying.perform(here.server, plan, (), here.said.append)

    sites.played(story)


def test_a_kind_that_the_cluster_does_not_serve_is_named() -> None:
    async def story() -> None:
        async with site() as here:
            monitor = {"apiVersion": "monitoring.coreos.com/v1", "kind": "PodMonitor", "metadata": {"name": "agent"}}
            with pytest.raises(Refused, match=r"does not serve PodMonitor of monitoring.coreos.com/v1; install its"):
                await here.apply([*sites.objects(), monitor])

    sites.played(story)


@pytest.mark.parametrize(
    "tree, why",
    [
        ("text", "is not an object"),
        ({"kind": "ConfigMap"}, "apiVersion: is missing"),
        ({"apiVersion": "v1", "kind": "ConfigMap"}, "metadata.name: is missing"),
        ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": 5}}, "is not text"),
        (sites.configmap(), "is in the set twice"),
    ],
)
def test_a_set_that_is_none_is_refused(tree: object, why: str) -> None:
    async def story() -> None:
        async with site(0) as here:
            with pytest.raises(BadObject, match=why):
                await here.apply([*sites.objects(), tree])  # type: ignore[list-item]

    sites.played(story)


def test_an_inventory_that_somebody_broke_stops_nothing() -> None:
    async def story() -> None:
        async with site() as here:
            await here.apply(sites.objects())
            here.edit(resources.CONFIGMAPS, "numalign-inventory", HERE.namespace, {"data": {"objects": "[{]\n{}\n"}})
            await here.apply(sites.objects())
            assert len(await here.inventory()) == 10

    sites.played(story)


def test_it_can_be_installed_in_a_namespace_that_every_cluster_has() -> None:
    async def story() -> None:
        async with site() as here:
            await here.apply(
                [sites.definition(), *sites.role("numalign-agent", "agent")], Installation("n", "kube-system")
            )
            assert "ConfigMap kube-system/n-inventory" in here.left()

    sites.played(story)


def test_waiting_ends_when_pods_run_and_every_node_of_an_agent_has_a_report() -> None:
    async def story() -> None:
        async with site() as here:
            await here.apply(sites.objects())
            await waiting.ready(here.server, await here.inventory(), 60.0, here.said.append)
            found = await waiting.standing(here.server, await here.inventory())
            words = {each.object: each.words for each in found}
            assert words["reports of DaemonSet numalign-system/numalign-agent"] == "2 of 2 nodes have a fresh report"
            assert words["Deployment numalign-system/numalign-scheduler"] == "2 of 2 replicas available"

    sites.played(story)


def test_waiting_names_the_nodes_without_a_report() -> None:
    async def story() -> None:
        async with site(publisher="none") as here:
            await here.apply(sites.objects())
            with pytest.raises(waiting.TimedOut, match="0 of 2 nodes have a fresh report; none from node-0, node-1"):
                await waiting.ready(here.server, await here.inventory(), 30.0, here.said.append)

    sites.played(story)


def test_waiting_for_a_rollout_that_failed_ends_at_its_deadline() -> None:
    async def story() -> None:
        async with site() as here:
            wanted = sites.objects()
            wanted[0]["spec"]["progressDeadlineSeconds"] = 20
            wanted[0]["spec"]["template"]["spec"]["nodeSelector"] = {"no": "node"}
            await here.apply(wanted)
            with pytest.raises(waiting.Failed, match="the rollout does not progress"):
                await waiting.ready(here.server, await here.inventory(), 3600.0, here.said.append)

    sites.played(story)


def test_faults_of_the_server_are_outlived() -> None:
    async def story() -> None:
        async with site() as here:
            numbers = iter(range(10_000))

            def gate(request: Request) -> None:
                if next(numbers) % 3 == 1 and request.repeat.name == "REFUSED":
                    raise errors.Unreachable(request.verb, request.words, "connection reset", sent=False)

            here.gate = gate
            for _ in range(20):
                try:
                    await here.apply(sites.objects())
                    break
                except Stopped:
                    continue
            here.gate = lambda request: None
            assert not applying.is_different(await here.diff(sites.objects()))

    sites.played(story)
