"""How a controller is run: what it is told, when it looks, and what happens if it fails."""

import asyncio
from collections.abc import Iterable

from numalign.simulator.apiserver.storage.resources import CONFIGMAPS
from numalign.simulator.controllers.framework.actions import Action, Create, MergePatch, Requeue
from numalign.simulator.controllers.framework.runner import LATENCY, ControllerContext
from numalign.simulator.controllers.framework.views import Key
from tests.unit.simulator.controllers.stories import Cluster, played


class Diary:
    """A controller that writes down when it looked at what, and wants what it is told to."""

    name = "diary"

    def __init__(self, *wants: Action) -> None:
        self.looks: list[tuple[str, float]] = []
        self.wants = list(wants)
        self.stumbles_over = ""

    def setup(self, context: ControllerContext) -> None:
        self.context = context
        context.views.watch(CONFIGMAPS, lambda change: context.enqueue(change.key))

    def reconcile(self, key: Key) -> Iterable[Action]:
        self.looks.append((key[1], round(self.context.api.clock.now(), 3)))
        if key[1] == self.stumbles_over:
            raise KeyError("what is this?")
        return [self.wants.pop(0)] if self.wants else []


def write(cluster: Cluster, name: str, value: str = "x") -> None:
    cluster.api.update(CONFIGMAPS, {"metadata": {"name": name, "namespace": "default"}, "data": {"a": value}})


def make(cluster: Cluster, name: str) -> None:
    cluster.api.create(CONFIGMAPS, {"metadata": {"name": name, "namespace": "default"}})


def test_changes_that_come_together_are_looked_at_once() -> None:
    diary = Diary()

    async def story(cluster: Cluster) -> None:
        make(cluster, "a")
        for value in "xyz":
            write(cluster, "a", value)
        began = cluster.clock.now()
        await asyncio.sleep(1)
        assert diary.looks == [("a", began + LATENCY)]

    played(story, [diary])


def test_a_controller_may_ask_to_look_again() -> None:
    diary = Diary(Requeue(30), Requeue(60))

    async def story(cluster: Cluster) -> None:
        make(cluster, "a")
        began = cluster.clock.now() + LATENCY
        await asyncio.sleep(600)
        assert [moment - began for _, moment in diary.looks] == [0, 30, 90]

    played(story, [diary])


def test_what_the_api_refuses_is_tried_again_later() -> None:
    nowhere = {"metadata": {"name": "gone", "namespace": "default"}}
    diary = Diary(*[MergePatch(CONFIGMAPS, nowhere, {"data": {}})] * 3)

    async def story(cluster: Cluster) -> None:
        make(cluster, "a")
        await asyncio.sleep(60)
        moments = [moment for _, moment in diary.looks]
        assert [round(later - moments[0], 3) for later in moments] == [0, 0.005, 0.015, 0.035]

    played(story, [diary])


def test_an_owner_hears_why_its_child_could_not_be_made() -> None:
    child = Create(CONFIGMAPS, {"metadata": {}}, {"kind": "ConfigMap", "metadata": {"name": "a", "uid": "u"}})
    diary = Diary(child)

    async def story(cluster: Cluster) -> None:
        make(cluster, "a")
        await asyncio.sleep(1)
        [told] = cluster.events("ConfigMap")
        assert told.startswith("FailedCreate: Error creating: ")
        assert "name or generateName is required" in told

    played(story, [diary])


def test_one_strange_object_does_not_stop_the_others(failures: list[str]) -> None:
    diary = Diary()
    diary.stumbles_over = "strange"

    async def story(cluster: Cluster) -> None:
        make(cluster, "strange")
        make(cluster, "plain")
        await asyncio.sleep(LATENCY * 1.2)
        assert [name for name, _ in diary.looks] == ["strange", "plain"]

    played(story, [diary])
    failures.append("Reconciliation failed controller=diary object=default/strange")
