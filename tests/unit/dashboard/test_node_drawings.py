"""Drawings of a node: nothing overlaps, nothing is drawn twice or left out, and text stays text."""

from __future__ import annotations

from itertools import combinations
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.dashboard.details import Core, Cpu, CpuUse, Held, NodeDetail, NodePod, Part
from numalign.dashboard.drawing import bars, boxes, distances, machine
from numalign.dashboard.drawing.boxes import Box, Drawing, Marks

MARKUP = "<script>alert(1)</script>\"'&amp;"
names = st.sampled_from(["ml/train-0", "ml/train-1", MARKUP, "\u202etxet", "a" * 253])


@st.composite
def zones(draw: st.DrawFn) -> tuple[list[Core], dict[int, Cpu]]:
    """The cores of one zone, and what their CPUs are used for."""
    threads, count = draw(st.integers(1, 4)), draw(st.integers(1, 128))
    per_l3 = draw(st.sampled_from([None, 1, 4, 8, 16]))
    cores = [
        Core(tuple(range(each * threads, (each + 1) * threads)), 3, 1, None if per_l3 is None else each // per_l3)
        for each in range(count)
    ]
    ids = [cpu for core in cores for cpu in core.cpus]
    uses = draw(st.lists(st.sampled_from(CpuUse), min_size=len(ids), max_size=len(ids)))
    used = {cpu: Cpu(cpu, use, draw(names) if use is CpuUse.HELD else "") for cpu, use in zip(ids, uses, strict=True)}
    return cores, used


def of_kind(drawing: Drawing, kind: str) -> list[Box]:
    return [box for box in drawing.boxes if kind in box.kind.split()]


def overlap(one: Box, other: Box) -> bool:
    """Whether the two have more than an edge in common."""
    across = one.x < other.right and other.x < one.right
    return across and one.y < other.bottom and other.y < one.bottom


@given(zones())
@settings(max_examples=60)
def test_every_cpu_is_drawn_once_inside_its_l3_group_and_apart_from_all_others(
    made: tuple[list[Core], dict[int, Cpu]],
) -> None:
    cores, used = made
    drawing = machine.cpus(3, cores, used, Marks(["ml/train-0"]))
    cpus = of_kind(drawing, "cpu")
    assert sorted(int(box.title.split(":")[0].removeprefix("CPU ")) for box in cpus) == sorted(used)
    assert not any(overlap(one, other) for one, other in combinations(cpus, 2))
    groups = of_kind(drawing, "l3")
    assert len(groups) == len({core.l3 for core in cores if core.l3 is not None})
    assert not any(overlap(one, other) for one, other in combinations(groups, 2))
    for box in cpus:
        assert not groups or sum(group.holds(box) for group in groups) == 1
    for box in drawing.boxes:
        assert Box(x=0, y=0, width=drawing.width, height=drawing.height, kind="").holds(box)
    assert drawing.width <= machine.WIDTH


def test_256_cpus_of_a_zone_fit_the_width_of_a_phone() -> None:
    cores = [Core((each, each + 128), 0, 0, each // 8) for each in range(128)]
    used = {cpu: Cpu(cpu, CpuUse.FREE) for core in cores for cpu in core.cpus}
    drawing = machine.cpus(0, cores, used, Marks([]))
    assert len(of_kind(drawing, "cpu")) == 256
    assert drawing.width <= machine.WIDTH < 390
    assert "256 on 128 cores; 256 free (0-255)" in drawing.label


@given(zones())
@settings(max_examples=20)
def test_what_pods_are_called_is_no_markup(made: tuple[list[Core], dict[int, Cpu]]) -> None:
    cores, used = made
    drawn = boxes.svg(machine.cpus(3, cores, used, Marks(cpu.pod for cpu in used.values() if cpu.pod)), "x")
    parsed = ElementTree.fromstring(str(drawn))
    assert {each.tag for each in parsed.iter()} <= {"svg", "defs", "pattern", "path", "g", "title", "rect", "text"}
    assert "<script" not in drawn


@st.composite
def parts(draw: st.DrawFn) -> tuple[Part, list[NodePod]]:
    allocatable = draw(st.integers(1, 64))
    free = draw(st.integers(0, allocatable))
    resource = draw(st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]))
    unit = {"cpu": 1000, "memory": 1 << 30}.get(resource, 1)
    part = Part(
        resource=resource,
        zones=(0,),
        size=(allocatable + draw(st.integers(0, 4))) * unit,
        allocatable=allocatable * unit,
        free=free * unit,
    )
    pods = [
        NodePod(
            name=f"ml/p-{number}",
            source=draw(st.sampled_from(["observed", "predicted", "unknown"])),
            holds=(
                Held(
                    resource=resource,
                    amount=draw(st.integers(1, 40)) * unit,
                    zones=draw(st.sampled_from([(0,), (1,), (0, 1), ()])),
                    certain=draw(st.booleans()),
                ),
            ),
        )
        for number in range(draw(st.integers(0, 6)))
    ]
    return part, pods


@given(parts())
@settings(max_examples=100)
def test_what_is_held_and_what_is_free_add_up_to_what_is_allocatable(made: tuple[Part, list[NodePod]]) -> None:
    part, pods = made
    held = bars.holdings(part, pods)
    assert sum(each.amount for each in held) + part.free == part.allocatable
    drawing = bars.bar(part, held, Marks(pod.name for pod in pods))
    assert not any(overlap(one, other) for one, other in combinations(drawing.boxes, 2) if one.right - other.x > 1e-6)
    assert abs(sum(box.width for box in drawing.boxes) - bars.WIDTH) < 1e-6
    assert len(held) <= len(of_kind(drawing, "piece"))


def test_few_devices_are_drawn_one_by_one() -> None:
    part = Part(resource="nvidia.com/gpu", zones=(0,), size=4, allocatable=4, free=1)
    held = [bars.Holding(pod="ml/a", amount=2), bars.Holding(pod="ml/b", amount=1, sure=False)]
    drawing = bars.bar(part, held, Marks(["ml/a", "ml/b"]))
    assert [box.text for box in drawing.boxes] == ["A", "A", "B", ""]
    assert [box.hatched for box in drawing.boxes] == [False, False, True, False]


@pytest.mark.parametrize("zones, text", [((0, 1), "of what pod ml/a holds in several zones"), ((2,), "not known")])
def test_an_amount_over_several_zones_is_said_to_be_one(zones: tuple[int, ...], text: str) -> None:
    part = Part(resource="memory", zones=(0,), size=8, allocatable=8, free=2)
    pod = NodePod(name="ml/a", source="observed", holds=(Held(resource="memory", amount=9, zones=zones),))
    drawing = bars.bar(part, bars.holdings(part, [pod]), Marks(["ml/a"]))
    assert text in drawing.boxes[0].title


def test_pods_keep_apart_by_their_letters_where_colours_repeat() -> None:
    pods = [f"ml/p-{number}" for number in range(1500)]
    marks = Marks(pods)
    assert len({marks.letters(pod) for pod in pods}) == len(pods)
    assert (marks.letters(pods[0]), marks.letters(pods[26]), marks.letters("ml/other")) == ("A", "AA", "?")


def test_distances_are_those_of_the_report() -> None:
    node = NodeDetail(name="n", zones=(0, 1, 4), distances={0: {0: 10, 1: 12, 4: 32}, 1: {0: 12, 1: 10}})
    found = distances.zones(node)
    assert [[cell.text for cell in row.cells] for row in found] == [
        ["10", "12", "32"],
        ["12", "10", "-"],
        ["-", "-", "-"],
    ]
    assert [cell.shade for cell in found[0].cells] == ["near", "middle", "far"]
    assert distances.zones(NodeDetail(name="n", zones=(0, 1))) == []


def test_devices_are_as_close_as_their_zones_and_no_closer_than_is_known() -> None:
    def device(resource: str, zones: tuple[int, ...], size: int = 4) -> Part:
        return Part(resource=resource, zones=zones, size=size, allocatable=size, free=size)

    node = NodeDetail(
        name="n",
        zones=(0, 1),
        cores=(Core((0, 4), 0, 0), Core((1, 5), 0, 0), Core((2, 6), 1, 1)),
        parts=(
            Part(resource="cpu", zones=(0,), size=4000, allocatable=4000, free=0),
            device("nvidia.com/gpu", (0,)),
            device("nvidia.com/gpu", (1,), size=1),
            device("example.com/nic", ()),
        ),
    )
    found = distances.topology(node)
    assert [row.name for row in found] == ["gpu@0", "gpu@1", "nic@-"]
    assert [[cell.text for cell in row.cells] for row in found] == [
        ["NODE", "SYS", "?"],
        ["SYS", "X", "?"],
        ["?", "?", "?"],
    ]
    assert [row.cpus for row in found] == ["0-1,4-5", "2,6", ""]
