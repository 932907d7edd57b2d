"""The published report of a node, through failures of the server and competing publishers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from msgspec import structs

from numalign.agent import cycle
from numalign.agent import main as http
from numalign.agent.publish import startuptaint
from numalign.api.nrt import normalise, publishers, topologymanager
from numalign.api.objects.node import Node
from numalign.deploy import crds
from numalign.process.serve import PageRequest, PageResponse
from numalign.simulator import virtualtime
from numalign.simulator.apiserver.storage.resources import CUSTOMRESOURCEDEFINITIONS, EVENTS, NODES
from numalign.simulator.apiserver.verbs.api import Patch
from numalign.simulator.nodes.publisher import crd
from numalign.simulator.nodes.publisher.crd import RESOURCE
from tests.unit.agent.clusters import NODE, PERIOD, STRICT, Script, Town

Story = Callable[[Town, Script], Coroutine[Any, Any, None]]
CRD = f"{crds.PLURAL}.topology.node.k8s.io"


def played(story: Story) -> None:
    async def main() -> None:
        await story(Town(), Script())

    virtualtime.run(main())


def later(seconds: float) -> Awaitable[None]:
    return asyncio.sleep(seconds)


def test_the_first_snapshot_is_published_at_once_and_owned_by_the_node() -> None:
    async def story(town: Town, script: Script) -> None:
        async with town.agent(script):
            await later(1)
        report = town.report()
        assert report is not None
        assert town.read() == (await script.look()).inventory.report(NODE)  # type: ignore[union-attr]
        (owner,) = report["metadata"]["ownerReferences"]
        assert owner == {"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": owner["uid"]}
        assert owner["uid"] == town.api.get(NODES, NODE)["metadata"]["uid"]

    played(story)


def test_without_a_fingerprint_everything_else_is_published() -> None:
    async def story(town: Town, script: Script) -> None:
        async with town.agent(script, fingerprint=False):
            await later(1)
        whole = (await script.look()).inventory.report(NODE)  # type: ignore[union-attr]
        assert whole.fingerprint is not None
        assert town.read() == structs.replace(whole, fingerprint=None)
        assert "fingerprint" not in str(town.report()).lower()

    played(story)


def test_a_paused_agent_leaves_the_report_as_it_is_and_publishes_nothing_of_its_own() -> None:
    async def story(town: Town, script: Script) -> None:
        async with town.agent(script, "paused", paused=True) as paused:
            await later(10 * PERIOD)
            assert town.report() is None
            assert script.looked > 5
            page = http.status_pages(paused, PERIOD)["/readyz"](PageRequest(method="GET", path="/readyz"))
            assert isinstance(page, PageResponse)
            assert (page.status, page.body) == (200, "ok: publishing is paused by --no-publish\n")
        async with town.agent(script):
            await later(1)
        before = town.report()
        async with town.agent(script, "paused", paused=True):
            await later(20 * PERIOD)
        assert town.report() == before

    played(story)


TAINTS = [
    {"key": "numalign.io/no-report", "effect": "NoSchedule"},
    {"key": "example.com/gpu", "value": "a", "effect": "NoExecute"},
]


def tainted(town: Town) -> None:
    town.api.patch(NODES, NODE, "", Patch("merge", {"spec": {"taints": TAINTS}}))


def taints(town: Town) -> list[str]:
    return [each["key"] for each in town.api.get(NODES, NODE)["spec"].get("taints", [])]


def test_the_start_up_taint_goes_with_the_first_report_and_other_taints_stay() -> None:
    async def story(town: Town, script: Script) -> None:
        tainted(town)
        script.unknown = ("the kubelet's configuration",)
        async with town.agent(script, untaint=True):
            await later(PERIOD)
            assert (town.report(), len(taints(town))) == (None, 2)
            script.unknown = ()
            await later(PERIOD)
        assert town.report() is not None
        assert taints(town) == ["example.com/gpu"]

    played(story)


def test_the_start_up_taint_stays_where_nothing_asks_for_its_removal() -> None:
    async def story(town: Town, script: Script) -> None:
        tainted(town)
        async with town.agent(script):
            await later(PERIOD)
        assert len(taints(town)) == 2

    played(story)


def test_a_taint_that_cannot_be_removed_at_once_is_removed_later(monkeypatch: pytest.MonkeyPatch) -> None:
    removal = startuptaint.removal

    def outdated(node: Node) -> dict[str, Any] | None:
        """Somebody changes the Node between the look and the write."""
        monkeypatch.setattr(startuptaint, "removal", removal)
        return (removal(node) or {}) | {"metadata": {"resourceVersion": "1"}}

    async def story(town: Town, script: Script) -> None:
        tainted(town)
        monkeypatch.setattr(startuptaint, "removal", outdated)
        async with town.agent(script, untaint=True):
            await later(2 * PERIOD)
        assert taints(town) == ["example.com/gpu"]

    played(story)


@pytest.mark.parametrize("mode, words", [("own", "v1;away"), ("rte", None)])
def test_a_kubelet_that_does_not_answer_is_reported_with_what_was_known_before(mode: Any, words: str | None) -> None:
    async def story(town: Town, script: Script) -> None:
        async with town.agent(script, mode=mode):
            await later(1)
            before = town.read()
            script.away = True
            await later(PERIOD)
            report = town.report()
            assert report is not None
            found = {each["name"]: each["value"] for each in report["attributes"]}
            assert found.get("numalign.io/kubelet-state") == words
            facts = structs.replace(town.read().facts, kubelet_away=None)
            assert structs.replace(town.read(), facts=facts) == before
            script.away = False
            await later(PERIOD)
            assert town.read() == before

    played(story)


def test_an_agent_that_never_saw_its_kubelet_adds_that_to_the_report_of_the_process_before_it() -> None:
    async def story(town: Town, script: Script) -> None:
        script.away = True
        async with town.agent(script):
            await later(PERIOD)
        assert town.report() is None
        script.away = False
        async with town.agent(script):
            await later(1)
        before, script.away = town.read(), True
        async with town.agent(script, "second"):
            await later(1)
        assert town.read() == structs.replace(before, facts=structs.replace(before.facts, kubelet_away=True))

    played(story)


def test_a_report_of_another_publisher_is_left_as_it_is() -> None:
    async def story(town: Town, script: Script) -> None:
        async with town.agent(script):
            await later(1)
        town.api.patch(RESOURCE, NODE, "", Patch("merge", {"zones": []}), manager="rte")
        script.away = True
        async with town.agent(script, "second"):
            await later(1)
        assert (town.read().zones, town.read().facts.kubelet_away) == ((), None)

    played(story)


def test_what_does_not_change_is_not_written_but_for_a_sign_of_life_every_five_minutes() -> None:
    async def story(town: Town, script: Script) -> None:
        async with town.agent(script) as agent:
            await later(3600)
            written = agent.metrics.reports.values
            assert written[("written",)] == 1
            assert 12 <= written[("heartbeat",)] <= 16
        report = town.report()
        assert report is not None
        assert report["metadata"]["generation"] == 1
        assert report["metadata"]["annotations"][publishers.HEARTBEAT] > "2026-01-01T00:55:00Z"

    played(story)


def test_a_change_is_published_with_the_next_snapshot() -> None:
    async def story(town: Town, script: Script) -> None:
        async with town.agent(script):
            await later(1)
            script.kubelet = STRICT
            await later(PERIOD)
        assert town.read().manager.policy == "single-numa-node"

    played(story)


def test_a_deleted_report_is_written_again_within_a_period() -> None:
    async def story(town: Town, script: Script) -> None:
        async with town.agent(script):
            await later(90)
            town.api.delete(RESOURCE, NODE)
            await later(PERIOD + 1)
            assert town.report() is not None

    played(story)


def test_a_recreated_node_owns_its_report_again() -> None:
    async def story(town: Town, script: Script) -> None:
        async with town.agent(script):
            await later(90)
            town.api.delete(NODES, NODE)
            uid = town.add_node()
            await later(PERIOD + 1)
            report = town.report()
        assert report is not None
        assert report["metadata"]["ownerReferences"][0]["uid"] == uid

    played(story)


@pytest.mark.parametrize("minutes", [0.5, 3, 60])
def test_when_the_server_is_back_it_knows_the_newest_within_a_period(minutes: float) -> None:
    async def story(town: Town, script: Script) -> None:
        async with town.agent(script) as agent:
            await later(1)
            town.away = True
            script.kubelet = STRICT
            await later(60 * minutes)
            town.away = False
            await later(PERIOD + 1)
            assert agent.standing.failure == ""
        assert town.read().manager.policy == "single-numa-node"

    played(story)


@pytest.mark.parametrize("seconds", [3, 47, 600])
def test_a_server_that_does_not_answer_holds_nothing_up_for_longer_than_a_period(seconds: float) -> None:
    async def story(town: Town, script: Script) -> None:
        town.hangs = True
        async with town.agent(script) as agent:
            await later(seconds)
            town.hangs, script.kubelet = False, STRICT
            await later(PERIOD + 1)
            assert agent.standing.failure == ""
        assert town.read().manager.policy == "single-numa-node"

    played(story)


def test_without_the_definition_the_agent_retries_and_says_what_is_missing() -> None:
    async def story(town: Town, script: Script) -> None:
        town.api.delete(CUSTOMRESOURCEDEFINITIONS, CRD)
        async with town.agent(script) as agent:
            await later(600)
            assert "NodeResourceTopology installed?" in agent.standing.failure
            town.api.create(CUSTOMRESOURCEDEFINITIONS, crd.crd())
            await later(PERIOD + 1)
        assert town.report() is not None

    played(story)


def test_an_older_definition_that_drops_attributes_is_noticed() -> None:
    async def story(town: Town, script: Script) -> None:
        town.api.delete(CUSTOMRESOURCEDEFINITIONS, CRD)
        older = crd.crd()
        del older["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["attributes"]
        town.api.create(CUSTOMRESOURCEDEFINITIONS, older)
        async with town.agent(script) as agent:
            await later(1)
            assert agent.metrics.pruned.values[()] >= 4
        report = town.report()
        assert report is not None
        assert "attributes" not in report
        # Without the method beside it, readers would take it for the fingerprint of all pods.
        assert normalise.FINGERPRINT_ANNOTATION not in report["metadata"]["annotations"]

    played(story)


def test_a_definition_that_was_just_changed_is_tried_once_more_and_then_believed() -> None:
    """Real servers apply by the old one for a moment."""

    async def story(town: Town, script: Script) -> None:
        whole, older = crd.crd(), crd.crd()
        del older["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["attributes"]
        town.api.delete(CUSTOMRESOURCEDEFINITIONS, CRD)
        town.api.create(CUSTOMRESOURCEDEFINITIONS, older)
        async with town.agent(script) as agent:
            await later(1)
            assert agent.metrics.pruned.values[()] >= 4
            town.api.patch(CUSTOMRESOURCEDEFINITIONS, CRD, "", Patch("merge", {"spec": whole["spec"]}))
            await later(PERIOD + 1)
            assert agent.metrics.pruned.values[()] == 0
            town.api.patch(CUSTOMRESOURCEDEFINITIONS, CRD, "", Patch("merge", {"spec": older["spec"]}))
            script.kubelet = STRICT
            await later(2 * PERIOD + 1)
            before = agent.metrics.reports.values[("written",)]
            await later(2 * PERIOD)
            assert agent.metrics.reports.values[("written",)] == before

    played(story)


def test_an_uncertain_snapshot_is_not_published() -> None:
    async def story(town: Town, script: Script) -> None:
        async with town.agent(script) as agent:
            await later(1)
            script.kubelet, script.unknown = STRICT, ("the kubelet's podresources do not answer",)
            await later(600)
            assert town.read().manager.policy == "none"
            age = agent.age()
            assert age is not None
            assert age > 590
            script.unknown = ()
            await later(cycle.SOON + 1)
        assert town.read().manager.policy == "single-numa-node"

    played(story)


def overwrite(town: Town, policy: str) -> None:
    now = {"name": "now", "value": str(town.clock.now())}
    attributes = [{"name": topologymanager.POLICY, "value": policy}, now]
    town.api.patch(RESOURCE, NODE, "", Patch("merge", {"attributes": attributes}), manager="other-publisher")


def test_the_agent_stops_for_another_publisher_and_reports_it() -> None:
    async def story(town: Town, script: Script) -> None:
        async with town.agent(script) as agent:
            for _ in range(30):
                await later(PERIOD)
                overwrite(town, "restricted")
            assert agent.other == "other-publisher"
            assert town.read().manager.policy == "restricted"
            assert agent.metrics.stands_back.values[()] == 1.0
            events = town.api.list(EVENTS).items
        assert {event["reason"] for event in events} == {"SecondTopologyPublisher"}
        assert "other-publisher" in events[0]["message"]

    played(story)


def test_it_tries_again_every_ten_periods() -> None:
    async def story(town: Town, script: Script) -> None:
        async with town.agent(script) as agent:
            for _ in range(60):
                await later(PERIOD)
                if town.read().manager.policy != "restricted":
                    overwrite(town, "restricted")
            tries = agent.metrics.reports.values[("written",)]
            # One write at first, then one in every ten periods and the one in which the other's is found out.
            assert 5 <= tries - 1 <= 6

    played(story)


def test_a_publisher_that_ended_is_followed_after_ten_periods() -> None:
    async def story(town: Town, script: Script) -> None:
        async with town.agent(script) as agent:
            await later(90)
            overwrite(town, "restricted")
            await later(9 * PERIOD)
            assert town.read().manager.policy == "restricted"
            await later(3 * PERIOD)
            assert agent.other == ""
        assert town.read().manager.policy == "none"

    played(story)


def test_what_another_publisher_left_behind_is_taken_over() -> None:
    async def story(town: Town, script: Script) -> None:
        left = {"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology", "zones": []}
        town.api.create(RESOURCE, {**left, "metadata": {"name": NODE}}, manager="other-publisher")
        async with town.agent(script) as agent:
            await later(10 * PERIOD)
            assert agent.other == ""
        assert len(town.read().zones) == 2

    played(story)


def test_an_object_that_is_claimed_by_a_label_is_left_alone() -> None:
    async def story(town: Town, script: Script) -> None:
        left = {"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology", "zones": []}
        metadata = {"name": NODE, "labels": {publishers.CLAIM: "Koordinator"}}
        town.api.create(RESOURCE, {**left, "metadata": metadata}, manager="koordlet")
        async with town.agent(script) as agent:
            await later(30 * PERIOD)
            assert agent.other == "Koordinator"
        assert town.read().zones == ()

    played(story)


def test_of_two_agents_on_one_node_one_writes_at_a_time_and_the_last_one_goes_on() -> None:
    async def story(town: Town, script: Script) -> None:
        async with town.agent(script, "older") as first:
            await later(90)
            async with town.agent(Script(), "newer") as second:
                await later(5 * PERIOD)
                assert (first.other, second.other) == ("newer", "")
                await later(3600)
                written = [agent.metrics.reports.values[("written",)] for agent in (first, second)]
                # The two take turns of ten periods, and change places within one.
                assert all(1 <= count <= 5 for count in written)
            await later(12 * PERIOD)
            assert first.other == ""
            age = first.age()
            assert age is not None
            assert age <= PERIOD + 1

    played(story)


@pytest.mark.parametrize("mode, words", [("own", set()), ("rte", {"reactive", "periodic"}), ("nfd", set())])
def test_rtes_form_names_the_trigger(mode: str, words: set[str]) -> None:
    async def story(town: Town, script: Script) -> None:
        found = set()
        async with town.agent(script, mode=mode):
            for _ in range(10):
                await later(PERIOD / 2)
                report = town.report()
                assert report is not None
                found.add(report["metadata"]["annotations"].get(publishers.RTE_UPDATE))
        assert found - {None} == words

    played(story)


def test_labels_and_annotations_of_others_stay() -> None:
    async def story(town: Town, script: Script) -> None:
        async with town.agent(script) as agent:
            await later(1)
            patch = {"metadata": {"labels": {"team": "blue"}, "annotations": {"note": "theirs"}}}
            town.api.patch(RESOURCE, NODE, "", Patch("merge", patch), manager="kubectl")
            script.kubelet = STRICT
            await later(PERIOD)
            assert agent.other == ""
        report = town.report()
        assert report is not None
        assert report["metadata"]["labels"] == {"team": "blue"}
        assert report["metadata"]["annotations"]["note"] == "theirs"

    played(story)
