"""The engine decides pods with shared devices, charges them, and finds them again on the pods."""

from functools import partial, reduce
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from numalign.api.attributes.devicetable import DeviceTable
from numalign.api.attributes.directmode import DirectMode
from numalign.api.decode import quantity
from numalign.api.objects.pod import Pod
from numalign.placement.capacity.rowreader import RowReader
from numalign.placement.columns.deviceshares import Shares
from numalign.placement.decisions import Code
from numalign.placement.direct.share import amounts
from numalign.placement.engine import Engine
from numalign.placement.exact import ExactFlavour
from numalign.placement.explain import answers, nodeview, wording
from numalign.placement.facts import NodeSeen, PodSeen, ReportSeen
from tests.unit.placement import choices
from tests.unit.placement.direct import clusters, devices
from tests.unit.placement.direct.clusters import bound, named, result
from tests.unit.placement.direct.devices import CORE, GPU, JOINT, MEMORY, RATIO, RDMA, SAME_PCIE

OFFERED = {GPU: 800, CORE: 800, RATIO: 800, MEMORY: 640 << 30, RDMA: 400, devices.SHARED: 8}


def engine(*names: str, table: DeviceTable | None = None, mode: DirectMode = clusters.ALL) -> Engine:
    found = Engine()
    for name in names:
        plain = clusters.node(name)
        offered = {**plain.status.allocatable, **{each: quantity.of(amount) for each, amount in OFFERED.items()}}
        found.apply(NodeSeen(structs.replace(plain, status=structs.replace(plain.status, allocatable=offered))))
        report = clusters.topology(name, mode=mode)
        facts = structs.replace(report.facts, shares=table or devices.table())
        found.apply(ReportSeen(structs.replace(report, facts=facts), 0.0))
    return found


def placed(on: Engine, of: Pod) -> Any:
    return choices.chosen(on, of, Random(1)).decision


def free(on: Engine, node: str = "n") -> Shares:
    """Summed up anew."""
    assert isinstance(on.flavour, ExactFlavour)
    on.flavour.refresh()
    machine = on.flavour.machine(on.rows[node])
    assert machine is not None
    return on.flavour.direct.ledger.without(node, machine, ()).shares


def pod(name: str, *limits: Any, **more: Any) -> Pod:
    return named(devices.pod(*limits, **more), name)


def test_the_decision_names_devices_by_container_and_for_the_pod() -> None:
    asked = pod("p", {GPU: 100, RDMA: 50}, {CORE: 50, RATIO: 50}, devices=SAME_PCIE)
    found = result(placed(engine("n"), asked))
    first, second = found.containers
    assert {kind: [each.minor for each in grants] for kind, grants in first.devices.items()} == {
        "gpu": [0],
        "rdma": [0],
    }
    assert first.devices["gpu"][0].id == "GPU-0"
    assert second.devices["gpu"][0].resources == {CORE: "50", RATIO: "50", MEMORY: "40Gi"}
    assert [(each.minor, each.resources[CORE]) for each in found.devices["gpu"]] == [(0, "100"), (1, "50")]


def test_a_new_process_knows_the_devices_in_use_from_the_pods() -> None:
    on, again = engine("n"), engine("n")
    limits: list[dict[str, int | str]] = [{GPU: 200}, {CORE: 30, RATIO: 33}, {MEMORY: "7Gi"}, {RDMA: 1}]
    for number, each in enumerate(limits):
        asked = pod(f"p{number}", each, init=[devices.container("i", {GPU: 100})])
        clusters.see(again, bound(asked, placed(on, asked)))
    assert free(on) == free(again)
    late = pod("late", {GPU: 100})
    assert result(placed(again, late)) == result(placed(on, late))


def test_a_pod_that_ends_gives_its_devices_back() -> None:
    on = engine("n")
    before, asked = free(on), pod("p", {GPU: 300, RDMA: 200})
    there = bound(asked, placed(on, asked))
    clusters.see(on, there)
    assert free(on) != before
    on.apply(PodSeen(structs.replace(there, status=structs.replace(there.status, phase="Succeeded")), 1.0))
    assert free(on) == before


def test_a_device_that_becomes_unhealthy_is_not_handed_out_and_what_is_held_is_remembered() -> None:
    on = engine("n")
    asked = pod("p", {CORE: 50, RATIO: 50})
    clusters.see(on, bound(asked, placed(on, asked)))
    sick = structs.replace(devices.table().devices[0], parts=0, memory=0)
    minors = []
    for number, table in enumerate((devices.table(sick, *devices.table().devices[1:]), devices.table())):
        report = clusters.topology("n")
        on.apply(ReportSeen(structs.replace(report, facts=structs.replace(report.facts, shares=table)), 1.0))
        (grant,) = result(placed(on, pod(f"q{number}", {CORE: 50, RATIO: 50}))).devices["gpu"]
        minors.append(grant.minor)
    assert minors == [1, 0]


def test_a_pod_is_in_the_zones_of_its_devices_though_nothing_of_it_is_aligned() -> None:
    on = engine("n")
    for name, limits in (("part", {CORE: 50, RATIO: 50}), ("four", {GPU: 400}), ("rest", {GPU: 300})):
        asked = pod(name, limits, spec="{}")
        clusters.see(on, bound(asked, placed(on, asked)))
    held = RowReader(on).held(on.rows["n"])
    assert {uid: held[uid] for uid in ("part", "four", "rest")} == {"part": 0b01, "four": 0b10, "rest": 0b01}


def test_the_view_of_a_node_has_its_devices_and_who_holds_them() -> None:
    on = engine("n")
    asked = pod("p", {CORE: 50, RATIO: 50}, {GPU: 300})
    clusters.see(on, bound(asked, placed(on, asked)))
    here = nodeview.of(on, "n")
    assert here is not None
    assert [(cell.zones, cell.free, cell.size) for cell in here.resources[CORE]] == [((0,), 50, 400), ((1,), 400, 400)]
    (tenant,) = here.tenants
    assert [(each.amount, each.zones) for each in tenant.charges if each.resource == CORE] == [(350, (0,))]
    assert tenant.decisions[1].devices == ("gpu 1", "gpu 2", "gpu 3")


def sentence(on: Engine, asked: Pod) -> str:
    reason = answers.of(on, asked).reason(on.rows["n"])
    assert reason is not None
    return wording.sentence(reason)


def test_a_refusal_names_what_is_missing() -> None:
    on = engine("n")
    assert sentence(on, pod("p", {GPU: 500})) == (
        "container c0 needs 500 koordinator.sh/gpu-core in one NUMA zone, best zone has 400, even when empty"
    )


def test_a_refusal_names_devices_that_are_not_connected_as_the_pod_asks() -> None:
    apart = devices.table(devices.gpu(0, 0, "a"), devices.nic(0, 0, "b"))
    on = engine("n", table=apart)
    assert sentence(on, pod("p", {GPU: 100, RDMA: 1}, devices=SAME_PCIE)).endswith(
        "and no free devices are connected as the pod asks"
    )
    assert placed(on, pod("p", {GPU: 100, RDMA: 1}, devices=JOINT)) is not None


def test_a_node_without_the_devices_refuses_the_pod_before_it_is_bound() -> None:
    on = engine("n", table=devices.table(devices.nic(0, 0, "a")))
    assert choices.chosen(on, pod("p", {GPU: 100})).refused == {Code.DOES_NOT_FIT: 1}


def test_a_node_in_predict_mode_takes_no_pod_with_parts_of_devices() -> None:
    on = engine("n", mode=DirectMode(frozenset({"mems"})))
    asked = pod("p", {CORE: 50, RATIO: 50}, spec="")
    assert choices.chosen(on, asked).refused == {Code.INTENT: 1}
    assert sentence(on, asked) == "the pod's annotations ask for parts of devices, which needs a node in direct mode"


def test_an_agent_that_hands_out_no_devices_gets_no_pod_that_wants_some() -> None:
    on = engine("n", mode=DirectMode(frozenset({"cpus", "mems"})))
    assert placed(on, pod("p", {CORE: 50, RATIO: 50})) is None


LIMITS: list[dict[str, int | str]] = [{GPU: 100}, {GPU: 300}, {CORE: 40, RATIO: 60}, {RDMA: 70}, {}]


class Story(clusters.Story):
    """Pods come and go, and processes start anew."""

    def __init__(self, draw: Any) -> None:
        super().__init__(draw, partial(engine, "n", "m"))

    def place(self, name: str) -> None:
        limits = self.draw(st.lists(st.sampled_from(LIMITS), min_size=1, max_size=2))
        policy = self.draw(st.sampled_from(["None", "BestEffort", "SingleNUMANode"]))
        init = [devices.container("i", {GPU: 200})] if self.draw(st.booleans()) else []
        joint = self.draw(st.sampled_from(["", JOINT]))
        asked = pod(name, *limits, init=init, spec=f'{{"policy": "{policy}"}}', devices=joint)
        decision = placed(self.on, asked)
        if decision is not None:
            self.there[name] = bound(asked, decision)
            clusters.see(self.on, self.there[name])

    def check(self, node: str) -> None:
        assert isinstance(self.on.flavour, ExactFlavour)
        self.on.flavour.refresh()
        machine = self.on.flavour.machine(self.on.rows[node])
        assert machine is not None
        stock, ledger = machine.stock, self.on.flavour.direct.ledger
        held = [amounts.taken(stock, each.shares) for each in ledger.pods(node).values()]
        together = reduce(amounts.added, held, stock.nothing)
        assert all(own <= unit.parts for own, unit in zip(together.parts, stock.units, strict=True))
        assert all(own <= unit.memory for own, unit in zip(together.memory, stock.units, strict=True))
        assert amounts.added(free(self.on, node), together) == stock.whole
        assert ledger.free(node, machine).shares == free(self.on, node)
        assert not ledger.problems


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_whatever_happens_no_part_of_a_device_is_held_twice(data: st.DataObject) -> None:
    story = Story(data.draw)
    steps = [story.place, story.place, story.place, story.end, story.restart]
    for number, step in enumerate(data.draw(st.lists(st.sampled_from(steps), max_size=12))):
        step(f"p{number}")
        for node in ("n", "m"):
            story.check(node)
