"""The deployer takes out what it brought, says what remains and why, and touches nothing of anybody else."""

from __future__ import annotations

import pytest

from numalign.deploy.apply import removing
from numalign.deploy.apply.inventory import Installation
from numalign.deploy.apply.objects import Ref
from numalign.kube.request import Request
from numalign.simulator import virtualtime
from numalign.simulator.apiserver.storage import resources
from numalign.simulator.apiserver.verbs.api import Patch
from tests.deploy import sites
from tests.deploy.sites import CRD, HERE, Interrupted, Site, site


def removed(found: list[removing.Removal]) -> list[str]:
    return [each.object.kind for each in found if each.action == "removed"]


async def installed(here: Site) -> list[str]:
    """What was there before."""
    before = here.left()
    await here.apply(sites.objects())
    await here.sleep(10.0)
    return before


def lease(name: str = "numalign") -> dict[str, object]:
    meta = {"name": name, "namespace": HERE.namespace}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": {"holderIdentity": "x"}}


def test_nothing_but_the_definition_is_left() -> None:
    async def story() -> None:
        async with site(without_crd=True) as here:
            before = await installed(here)
            here.api.create(resources.LEASES, lease(), manager="numalign")
            found = await here.remove()
            assert here.left() == sorted([*before, f"{CRD.kind} {CRD.name}"])
            kinds = removed(found)
            assert kinds[:2] == ["DaemonSet", "Deployment"]
            assert kinds[-1] == "Namespace"
            assert kinds.index("Lease") < kinds.index("ConfigMap")
            assert [each.object for each in found if each.action == "kept"] == [CRD]

    sites.played(story)


def test_pods_are_gone_before_the_rights_of_their_programs_are() -> None:
    async def story() -> None:
        async with site() as here:
            await installed(here)
            pods: list[int] = []

            def gate(request: Request) -> None:
                if request.method == "DELETE" and "clusterrole" in request.path:
                    pods.append(len(here.api.list(resources.PODS).items))

            here.gate = gate
            await here.remove()
            assert pods == [0, 0, 0, 0]

    sites.played(story)


def test_the_definition_goes_when_asked_and_with_it_all_reports() -> None:
    async def story() -> None:
        async with site(without_crd=True) as here:
            before = await installed(here)
            await here.remove(purge=True)
            assert here.left() == before

    sites.played(story)


def test_a_foreign_definition_stays_even_when_asked() -> None:
    async def story() -> None:
        async with site() as here:
            before = await installed(here)
            await here.remove(purge=True)
            assert here.left() == before

    sites.played(story)


def test_a_namespace_that_holds_something_else_stays_and_the_reason_is_told() -> None:
    async def story() -> None:
        async with site() as here:
            await installed(here)
            tree = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "theirs", "namespace": HERE.namespace},
            }
            here.api.create(resources.CONFIGMAPS, tree, manager="somebody")
            found = await here.remove()
            assert found[-1].why == "kept: it holds ConfigMap theirs"
            assert [name for name in here.left() if HERE.namespace in name] == [
                f"ConfigMap {HERE.namespace}/theirs",
                f"Namespace {HERE.namespace}",
            ]

    sites.played(story)


def test_a_namespace_that_was_there_before_stays() -> None:
    async def story() -> None:
        async with site() as here:
            tree = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HERE.namespace}}
            here.api.create(resources.NAMESPACES, tree, manager="somebody")
            before = await installed(here)
            await here.remove()
            assert here.left() == before

    sites.played(story)


def test_what_somebody_else_made_in_its_place_stays() -> None:
    async def story() -> None:
        async with site() as here:
            await installed(here)
            here.api.delete(resources.CLUSTERROLES, "numalign-agent")
            here.api.create(resources.CLUSTERROLES, sites.role("numalign-agent", "agent")[0], manager="somebody")
            kept = [each for each in await here.remove() if each.action == "kept"]
            assert [each.object.name for each in kept] == ["numalign-agent"]
            assert "ClusterRole numalign-agent" in here.left()

    sites.played(story)


def test_what_a_finalizer_holds_is_named_and_a_second_run_ends_the_job() -> None:
    async def story() -> None:
        async with site() as here:
            before = await installed(here)
            where = (resources.CONFIGMAPS, "numalign-scheduler", HERE.namespace)
            here.api.patch(*where, Patch("merge", {"metadata": {"finalizers": ["example.com/hold"]}}))
            found = await here.remove(seconds=20.0)
            (held,) = [each for each in found if each.action == "still there"]
            assert held.object == Ref("v1", "ConfigMap", "numalign-scheduler", HERE.namespace)
            assert held.object in await here.inventory()
            here.api.patch(*where, Patch("merge", {"metadata": {"finalizers": None}}))
            await here.remove()
            assert here.left() == before

    sites.played(story)


def test_a_removal_that_ends_at_any_call_is_completed_by_the_next_one() -> None:
    async def story(ends_at: int) -> bool:
        async with site() as here:
            before = await installed(here)
            countdown = iter(range(ends_at, -1, -1))

            def gate(request: Request) -> None:
                if sites.writes(request) and next(countdown) == 0:
                    raise Interrupted

            here.gate = gate
            with pytest.raises(Interrupted):
                await here.remove()
            here.gate = lambda request: None
            await here.remove()
            assert here.left() == before
            return True

    assert all(virtualtime.run(story(each)) for each in range(11))


def test_where_nothing_is_installed_there_is_nothing_to_do() -> None:
    async def story() -> None:
        async with site() as here:
            assert await here.remove() == []
            assert await here.remove(Installation("numalign", "kube-system")) == []

    sites.played(story)


def test_lacking_rights_are_named() -> None:
    async def story() -> None:
        async with site() as here:
            await installed(here)

            async def may(right: object) -> bool:
                return "delete clusterroles" not in str(right)

            here.server.may = may  # type: ignore[method-assign]
            plan = await removing.plan_for(here.server, HERE, purge=False)
            assert await removing.check(here.server, plan) == [
                "you may not delete clusterroles.rbac.authorization.k8s.io; ask an administrator for it"
            ]

    sites.played(story)


@pytest.mark.parametrize("text", ["", "- a", "{", "leaderElection: {}", "leaderElection: {resourceName: a}"])
def test_a_configuration_without_a_lease_names_none(text: str) -> None:
    assert removing.leases({"data": {"x": f"# KubeSchedulerConfiguration\n{text}"}}) == []
