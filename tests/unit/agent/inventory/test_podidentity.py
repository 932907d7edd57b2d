"""Who is asked for uids, and what is made of the answers."""

from __future__ import annotations

import pytest
from msgspec import structs

from numalign.agent.inventory import inventory, podidentity
from numalign.agent.inventory.podidentity import KnownUids
from numalign.agent.sources.checkpoints import CPUCheckpoint
from numalign.agent.sources.podresources import ContainerResources, PodResources
from numalign.agent.sources.pods import LocalPod, PodsError
from numalign.api.objects.meta import ObjectMeta
from numalign.kube.client import Client
from numalign.kubelet.cpu.state import CPUState
from numalign.kubelet.report import report
from numalign.simulator import virtualtime
from numalign.simulator.apiserver.storage.resources import PODS
from numalign.simulator.apiserver.verbs.api import Patch
from tests.unit.agent import kubelet_looks as looks
from tests.unit.agent.clusters import NODE, PLAIN, Town

WEB = ("default", "web")
HASH = "0123456789abcdef0123456789abcdef"


class Kubelet:
    def __init__(self, *pods: LocalPod, absent: bool = False) -> None:
        self.pods, self.absent, self.asked = pods, absent, 0

    async def list(self) -> tuple[LocalPod, ...]:
        self.asked += 1
        if self.absent:
            raise PodsError("no socket", absent=True)
        return self.pods


def told(
    kubelet: Kubelet, written: frozenset[str] = frozenset(), *, away: bool = False, phase: str = "Running"
) -> KnownUids:
    async def main() -> KnownUids:
        town = Town()
        spec = {"nodeName": NODE, "containers": [{"name": "main", "image": "x"}]}
        tree = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default"}, "spec": spec}
        town.api.create(PODS, tree)
        town.api.patch(PODS, "web", "default", Patch("merge", {"status": {"phase": phase}}), subresource="status")
        town.away = away
        async with Client(town.access(), clock=town.clock) as client:
            return await podidentity.UidLookup(NODE, kubelet, client).known(written, 0.0)

    return virtualtime.run(main())


def test_a_kubelet_that_lists_all_pods_is_enough() -> None:
    found = told(Kubelet(LocalPod("a-1", *WEB)), frozenset({"a-1"}))
    assert found == KnownUids({WEB: "a-1"}, {WEB: "a-1"}, local=frozenset({"a-1"}))


def test_the_api_server_is_asked_about_entries_of_pods_that_the_kubelet_does_not_know() -> None:
    found = told(Kubelet(), frozenset({"somebody"}))
    assert list(found.public) == [WEB]
    assert not found.unsure


def test_a_kubelet_knows_before_the_api_server_that_a_pod_has_finished() -> None:
    found = told(Kubelet(LocalPod("a-1", *WEB, phase="Succeeded")), frozenset({"a-1"}))
    assert WEB in found.public
    assert found.local == {"a-1"}


def test_finished_pods_are_not_matched() -> None:
    assert told(Kubelet(absent=True), phase="Failed").public == {}


def test_without_any_answer_the_uids_are_unsure() -> None:
    assert told(Kubelet(absent=True), away=True) == KnownUids(unsure=True)


def test_a_kubelet_without_the_socket_is_not_asked_every_time() -> None:
    kubelet = Kubelet(absent=True)

    async def main() -> None:
        asking = podidentity.UidLookup(NODE, kubelet, None)
        for second in range(5):
            await asking.known(frozenset(), float(second))

    virtualtime.run(main())
    assert kubelet.asked == 1


def test_a_static_pod_has_one_uid_for_the_cluster_and_one_for_its_kubelet() -> None:
    annotations = {podidentity.MIRROR_POD: HASH, podidentity.CONFIG_HASH: HASH}
    mirror = ObjectMeta(namespace="default", name="web", uid="u-1", annotations=annotations)
    assert podidentity.of_api_server([podidentity.PodHeader(mirror)]) == KnownUids({WEB: "u-1"}, {WEB: HASH})
    assert podidentity.of_kubelet([LocalPod(HASH, *WEB)]) == KnownUids({}, {WEB: HASH}, local=frozenset({HASH}))


@pytest.mark.parametrize("told, uid", [(KnownUids({WEB: "u-1"}, {WEB: HASH}), "u-1"), (KnownUids({}, {WEB: HASH}), "")])
def test_a_report_calls_a_static_pod_as_the_cluster_does_or_by_name(told: KnownUids, uid: str) -> None:
    listed = PodResources(*WEB, (ContainerResources("main", (), (2, 3), ()),), (), ())
    state = CPUState(PLAIN.initial().cpu.default & ~0b1100, {HASH: {"main": 0b1100}})  # type: ignore[union-attr]
    readings = structs.replace(
        looks.at(PLAIN, PLAIN.initial()), pods=(listed,), cpu_checkpoint=CPUCheckpoint("static", state)
    )
    found = inventory.of(readings, PLAIN.machine, told).report(NODE)
    (placement,) = found.facts.placements or ()
    assert (placement.name, placement.uid) == ("web", uid)


@pytest.mark.parametrize(
    "told, free",
    [(KnownUids({WEB: "u-1"}), False), (KnownUids(unsure=True), False), (KnownUids(), True)],
    ids=["exists", "perhaps", "is gone"],
)
def test_what_a_pod_holds_stays_charged_while_a_kubelet_that_just_started_does_not_list_it(
    told: KnownUids, free: bool
) -> None:
    initial = PLAIN.initial()
    state = CPUState(initial.cpu.default & ~0b1100, {"u-1": {"main": 0b1100}})  # type: ignore[union-attr]
    readings = structs.replace(looks.at(PLAIN, initial), pods=(), cpu_checkpoint=CPUCheckpoint("static", state))
    found = inventory.of(readings, PLAIN.machine, told).report(NODE)
    empty = report.of(NODE, PLAIN, initial)
    cpus = [zone.resources["cpu"].available for zone in found.zones]
    assert (cpus == [zone.resources["cpu"].available for zone in empty.zones]) is free
    assert podidentity.checkpoint_uids(readings) == {"u-1"}


OTHER = PodResources("default", "other", (ContainerResources("main"),), (), ())


@pytest.mark.parametrize(
    "others, uids, free",
    [((), {}, True), ((OTHER,), {("default", "other"): "u-2"}, True), ((OTHER,), {}, False)],
    ids=["no other pod", "another pod", "another pod, to which it may belong"],
)
def test_what_a_pod_holds_is_free_once_its_kubelet_knows_it_and_does_not_list_it_any_more(
    others: tuple[PodResources, ...], uids: dict[tuple[str, str], str], free: bool
) -> None:
    """Its containers have stopped, and the kubelet frees it before it admits the next pod."""
    initial = PLAIN.initial()
    state = CPUState(initial.cpu.default & ~0b1100, {"u-1": {"main": 0b1100}})  # type: ignore[union-attr]
    readings = structs.replace(looks.at(PLAIN, initial), pods=others, cpu_checkpoint=CPUCheckpoint("static", state))
    known = KnownUids({WEB: "u-1", **uids}, {WEB: "u-1", **uids}, local=frozenset({"u-1", *uids.values()}))
    found = inventory.of(readings, PLAIN.machine, known)
    cpus = [zone.resources["cpu"].available for zone in found.report(NODE).zones]
    assert (cpus == [zone.resources["cpu"].available for zone in report.of(NODE, PLAIN, initial).zones]) is free
    assert found.unlisted
