"""ProvisioningRequests of the scheduler's own class are answered as cluster-autoscaler's API describes it, mostly in
virtual time: by the count of pods that the kubelets admit, all of a request or none."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from numalign.kube.client import Client
from numalign.scheduler.capacity.messages import TogetherAnswer
from numalign.scheduler.capacity.service import AskedShape, CapacityService
from numalign.scheduler.http import serving
from numalign.scheduler.main import Scheduler, Setup
from numalign.scheduler.provisioning.answers import Terms
from numalign.simulator import cluster, virtualtime
from numalign.simulator.apiserver.storage.resources import CUSTOMRESOURCEDEFINITIONS, NODES, PODS, PODTEMPLATES
from numalign.simulator.apiserver.storage.resources import Resource as Kind
from numalign.simulator.apiserver.verbs.api import Api, Patch
from numalign.simulator.cluster import Cluster
from numalign.simulator.nodes.specs import NodeSpec
from numalign.simulator.trees import Tree
from tests.embedded import clusters, definitions
from tests.embedded import schedulerstories as stories
from tests.embedded.test_scheduler_preemption import servers

CLASS: Final = "capacity.numalign.io"
TERMS: Final = Terms(class_name=CLASS)
ZONE: Final = 80
"""CPUs of a pod that takes more than half of a zone of these servers."""


@dataclass
class Site:
    """An embedded cluster with a scheduler that answers."""

    embedded: Cluster
    clock: Any
    names: list[str] = field(default_factory=list)

    @property
    def api(self) -> Api:
        return self.embedded.api

    @property
    def requests(self) -> Kind:
        found = self.api.state.registry.of_kind("autoscaling.x-k8s.io", "v1", "ProvisioningRequest")
        assert found is not None
        return found

    def template(self, name: str, cpus: int = ZONE, **spec: object) -> None:
        tree = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": name, "namespace": "default"}}
        self.api.create(PODTEMPLATES, {**tree, "template": {"spec": stories.pod("p", cpus, **spec)["spec"]}})

    def ask(self, name: str, *sets: tuple[str, int], of: str = CLASS, **parameters: str) -> None:
        spec = {
            "provisioningClassName": of,
            "podSets": [{"podTemplateRef": {"name": template}, "count": count} for template, count in sets],
            **({"parameters": parameters} if parameters else {}),
        }
        tree = {"apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest", "spec": spec}
        self.api.create(self.requests, {**tree, "metadata": {"name": name, "namespace": "default"}})

    def conditions(self, name: str) -> dict[str, Tree]:
        status = self.api.get(self.requests, name, "default").get("status", {})
        return {each["type"]: each for each in status.get("conditions", [])}

    def said(self, name: str) -> dict[str, tuple[str, str]]:
        """By type: status and reason."""
        return {kind: (each["status"], each["reason"]) for kind, each in self.conditions(name).items()}

    def pod(self, name: str, request: str = "", cpus: int = ZONE) -> None:
        tree = stories.pod(name, cpus)
        if request:
            tree["metadata"]["annotations"] = {"autoscaling.x-k8s.io/consume-provisioning-request": request}
        self.api.create(PODS, tree)

    def running(self, name: str) -> bool:
        return bool(self.api.get(PODS, name, "default")["spec"].get("nodeName"))


ACCEPTED: Final = {"Accepted": ("True", "Accepted")}
FOUND: Final = {**ACCEPTED, "Provisioned": ("True", "CapacityIsFound")}
NOT_FOUND: Final = {**ACCEPTED, "Provisioned": ("False", "CapacityIsNotFound")}


def told(story: Callable[[Site], Awaitable[None]], nodes: list[NodeSpec] | None = None, **how: Any) -> None:
    virtualtime.run(_told(story, nodes or servers(2), **how))


async def _told(
    story: Callable[[Site], Awaitable[None]], nodes: list[NodeSpec], *, setup: Setup | None = None, terms: Terms = TERMS
) -> None:
    clock = virtualtime.clock(Random(1))
    async with cluster.running(nodes, clock, Random(1)) as embedded:
        embedded.api.create(CUSTOMRESOURCEDEFINITIONS, definitions.PROVISIONING_REQUESTS)
        async with Client(embedded.access(), clock=clock) as client:
            scheduler = Scheduler(setup or Setup(), client)
            serving.answer_provisioning_requests(scheduler, terms, client)
            running = asyncio.ensure_future(scheduler.run())
            try:
                await clock.sleep(20)
                await story(Site(embedded, clock))
            finally:
                running.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await running


def test_a_request_for_which_there_is_room_is_provisioned_and_says_where() -> None:
    async def story(site: Site) -> None:
        site.template("worker")
        site.ask("job", ("worker", 4))
        await site.clock.sleep(10)
        assert site.said("job") == FOUND
        assert site.conditions("job")["Provisioned"]["message"].startswith("4 pods find room, on 2 nodes together")
        assert {each["observedGeneration"] for each in site.conditions("job").values()} == {1}

    told(story)


def test_one_pod_more_than_the_zones_hold_is_not_provisioned_although_node_totals_suffice() -> None:
    async def story(site: Site) -> None:
        site.template("worker", 60)
        site.ask("job", ("worker", 5))
        await site.clock.sleep(10)
        assert site.said("job") == NOT_FOUND
        message = site.conditions("job")["Provisioned"]["message"]
        assert "4 of 5 pods of worker (default/job) fit" in message
        assert "container main needs 60 CPUs in one NUMA zone" in message

    told(story, servers(2))


def test_a_request_is_provisioned_as_soon_as_pods_have_made_room() -> None:
    async def story(site: Site) -> None:
        site.template("worker")
        site.pod("in-the-way")
        await site.clock.sleep(10)
        site.ask("job", ("worker", 4))
        await site.clock.sleep(30)
        assert site.said("job") == NOT_FOUND
        site.api.delete(PODS, "in-the-way", "default", grace=0)
        await site.clock.sleep(90)
        assert site.said("job") == FOUND

    told(story)


def test_two_requests_are_not_promised_the_same_room_and_a_booking_ends_after_ten_minutes() -> None:
    async def story(site: Site) -> None:
        site.template("worker")
        site.ask("first", ("worker", 3))
        await site.clock.sleep(2)
        site.ask("second", ("worker", 2))
        await site.clock.sleep(60)
        assert (site.said("first"), site.said("second")) == (FOUND, NOT_FOUND)
        message = site.conditions("second")["Provisioned"]["message"]
        assert message.endswith("with the requests booked before")
        await site.clock.sleep(660)
        assert site.said("first")["BookingExpired"] == ("True", "BookingExpired")
        assert site.said("first")["Provisioned"] == ("True", "CapacityIsFound")
        assert site.said("second") == FOUND

    told(story)


def test_bookings_that_all_hold_are_counted_in_one_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kueue may have hundreds of them, and every turn looks at all."""
    room, asked = CapacityService.room, list[float]()

    async def story(site: Site) -> None:
        async def counted(service: CapacityService, shapes: Sequence[AskedShape]) -> TogetherAnswer:
            asked.append(site.clock.now())
            return await room(service, shapes)

        site.template("small", cpus=8)
        for number in range(4):
            site.ask(f"job-{number}", ("small", 1))
        await site.clock.sleep(30)
        assert [site.said(f"job-{number}") for number in range(4)] == [FOUND] * 4
        monkeypatch.setattr(CapacityService, "room", counted)
        await site.clock.sleep(60)
        assert len(asked) == len(set(asked)) > 0, "one question per turn"

    told(story)


def test_a_pod_of_a_request_that_cannot_be_read_spoils_no_booking() -> None:
    async def story(site: Site) -> None:
        site.template("worker")
        site.ask("first", ("worker", 3))
        await site.clock.sleep(10)
        odd = stories.pod("odd", ZONE, nodeName="g-0")
        notes = {"autoscaling.x-k8s.io/consume-provisioning-request": "first", "numalign.io/scope": "diagonal"}
        odd["metadata"]["annotations"] = notes
        site.api.create(PODS, odd)
        site.ask("second", ("worker", 2))
        await site.clock.sleep(30)
        assert (site.said("first"), site.said("second")) == (FOUND, NOT_FOUND)

    told(story)


def test_pods_that_name_their_request_use_its_booking_up() -> None:
    async def story(site: Site) -> None:
        site.template("worker")
        site.ask("first", ("worker", 2))
        await site.clock.sleep(10)
        for name in ("a", "b"):
            site.pod(name, "first")
        await site.clock.sleep(20)
        assert [site.running(name) for name in ("a", "b")] == [True, True]
        site.ask("second", ("worker", 2))
        await site.clock.sleep(20)
        assert site.said("second") == FOUND
        assert site.said("first") == FOUND

    told(story)


def test_a_booking_without_room_is_revoked_after_a_minute_and_never_once_its_pods_arrive() -> None:
    async def story(site: Site) -> None:
        site.template("worker")
        site.ask("patient", ("worker", 1))
        site.ask("unlucky", ("worker", 3))
        await site.clock.sleep(10)
        assert (site.said("patient"), site.said("unlucky")) == (FOUND, FOUND)
        site.pod("mine", "patient")
        await site.clock.sleep(10)
        site.api.delete(NODES, "g-1")
        await site.clock.sleep(30)
        assert site.said("unlucky") == FOUND
        await site.clock.sleep(60)
        assert site.said("unlucky")["CapacityRevoked"][0] == "True"
        assert "CapacityRevoked" not in site.said("patient")

    told(story)


def test_several_kinds_of_pods_are_provisioned_together_or_not_at_all() -> None:
    async def story(site: Site) -> None:
        site.template("large")
        site.template("small", 2)
        site.ask("fits", ("large", 3), ("small", 10))
        await site.clock.sleep(10)
        assert site.said("fits") == FOUND
        site.api.delete(site.requests, "fits", "default")
        site.ask("too-many", ("large", 5), ("small", 1))
        await site.clock.sleep(20)
        assert site.said("too-many") == NOT_FOUND

    told(story)


def test_requests_of_other_classes_and_without_templates_are_left_alone_until_the_templates_come() -> None:
    async def story(site: Site) -> None:
        site.ask("foreign", ("worker", 1), of="check-capacity.autoscaling.x-k8s.io")
        site.ask("early", ("worker", 1))
        await site.clock.sleep(10)
        assert site.said("foreign") == {}
        assert site.said("early")["Provisioned"] == ("False", "PodTemplateNotFound")
        assert "default/worker" in site.conditions("early")["Provisioned"]["message"]
        site.template("worker")
        await site.clock.sleep(10)
        assert site.said("early") == FOUND

    told(story)


def test_parameters_of_the_request() -> None:
    async def story(site: Site) -> None:
        site.template("huge", 1000)
        site.ask("once", ("huge", 1), noRetry="true")
        site.ask("brief", ("huge", 1), ValidUntilSeconds="60")
        site.ask("wrong", ("huge", 1), noRetry="perhaps")
        await site.clock.sleep(20)
        assert site.said("once") == {**ACCEPTED, "Failed": ("True", "CapacityIsNotFound")}
        assert site.said("brief") == NOT_FOUND
        assert site.said("wrong") == {"Failed": ("True", "InvalidParameters")}
        await site.clock.sleep(60)
        assert site.said("brief")["Failed"] == ("True", "Expired")

    told(story)


def test_a_pod_whose_annotations_make_no_sense_is_named() -> None:
    async def story(site: Site) -> None:
        site.template("worker")
        changes = {"template": {"metadata": {"annotations": {"numalign.io/scope": "diagonal"}}}}
        site.api.patch(PODTEMPLATES, "worker", "default", Patch("merge", changes))
        site.ask("job", ("worker", 1))
        await site.clock.sleep(10)
        assert site.said("job")["Provisioned"] == ("False", "PodTemplateNotUsable")

    told(story)


def test_files_that_the_kubelet_makes_do_not_limit_the_promise() -> None:
    async def story(site: Site) -> None:
        site.template("worker", volumes=[{"name": "scratch", "emptyDir": {}}])
        site.ask("job", ("worker", 4))
        await site.clock.sleep(10)
        assert site.said("job") == FOUND
        assert "affinity" not in site.conditions("job")["Provisioned"]["message"]

    told(story)


def test_conditions_of_others_stay_and_nothing_is_written_when_nothing_changes() -> None:
    async def story(site: Site) -> None:
        site.template("worker")
        site.ask("job", ("worker", 1))
        await site.clock.sleep(10)
        other = {"type": "Seen", "status": "True", "reason": "By", "message": "", "lastTransitionTime": None}
        known = site.api.get(site.requests, "job", "default")
        kept = [*known["status"]["conditions"], {**other, "lastTransitionTime": "2026-01-01T00:00:00Z"}]
        patch = Patch("merge", {"status": {"conditions": kept}})
        site.api.patch(site.requests, "job", "default", patch, subresource="status")
        version = site.api.get(site.requests, "job", "default")["metadata"]["resourceVersion"]
        await site.clock.sleep(300)
        assert site.api.get(site.requests, "job", "default")["metadata"]["resourceVersion"] == version
        await site.clock.sleep(400)
        assert set(site.said("job")) == {"Accepted", "Provisioned", "Seen", "BookingExpired"}

    told(story)


def test_a_process_answers_over_the_network_and_another_class_is_none_of_its_business(tmp_path: Path) -> None:
    with clusters.up(tmp_path, "--nodes 2") as up:
        code, said = up.call(
            "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definitions.PROVISIONING_REQUESTS
        )
        assert code == 201, said
        template = {"metadata": {"name": "worker"}, "template": {"spec": stories.pod("p", 1)["spec"]}}
        assert up.call("POST", "/api/v1/namespaces/default/podtemplates", template)[0] == 201
        path = "/apis/autoscaling.x-k8s.io/v1/namespaces/default/provisioningrequests"
        clusters.awaited(lambda: up.call("GET", path)[0] == 200)
        for name, of in (("job", CLASS), ("foreign", "check-capacity.autoscaling.x-k8s.io")):
            pods = [{"podTemplateRef": {"name": "worker"}, "count": 2}]
            tree = {"apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest", "metadata": {"name": name}}
            asked = {**tree, "spec": {"provisioningClassName": of, "podSets": pods}}
            assert up.call("POST", path, asked)[0] == 201
        with clusters.running(up, f"scheduler run --port 0 --provisioning-class {CLASS}"):
            clusters.awaited(lambda: "status" in up.call("GET", f"{path}/job")[1])
            found = up.call("GET", f"{path}/job")[1]["status"]["conditions"]
        assert {each["type"]: each["status"] for each in found} == {"Accepted": "True", "Provisioned": "True"}
        assert "status" not in up.call("GET", f"{path}/foreign")[1]
