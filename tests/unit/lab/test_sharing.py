"""Labs of tests on machines of any size: no more at a time than there is room for, and no test without its lab."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.kubelet.machine import presets
from numalign.lab import preflight, spec
from numalign.lab.errors import LabError
from numalign.lab.spec import LabSpec, NodeSpec
from tests.lab import fleet, tales
from tests.lab.labs import SPARE, Labs
from tests.lab.live import Live

NODE = spec.node("node", presets.machine("2x16"))
MOST = 5
ENOUGH = preflight.instances(MOST, MOST) + SPARE


class Machine:
    """Starts labs that only take instances away."""

    def __init__(self, instances: int) -> None:
        self.instances = instances
        self.labs: dict[str, LabSpec] = {}

    @contextlib.contextmanager
    def start(self, lab: LabSpec) -> Iterator[Live]:
        needed = preflight.instances(len(lab.nodes), lab.reporter_count)
        if self.free(needed) < needed:
            raise LabError("too many open files")
        self.labs[lab.name] = lab
        yield cast(Live, lab)
        del self.labs[lab.name]

    def free(self, wanted: int) -> int:
        taken = sum(preflight.instances(len(lab.nodes), lab.reporter_count) for lab in self.labs.values())
        return min(wanted, self.instances - taken)


def lab(name: str, nodes: Sequence[NodeSpec]) -> LabSpec:
    return LabSpec(name=name, nodes=tuple(nodes), agent=True)


sizes = st.dictionaries(st.sampled_from("abcd"), st.integers(1, MOST), min_size=1)


@given(sizes, st.lists(st.sampled_from("abcd")), st.integers(ENOUGH, 4 * ENOUGH))
def test_every_lab_that_is_asked_for_runs_and_no_other_lab_is_left_without_instances(
    nodes: dict[str, int], asked: list[str], instances: int
) -> None:
    machine = Machine(instances)
    labs = Labs(machine.start, machine.free)
    for name in filter(nodes.__contains__, asked):
        labs.of(lab(name, spec.repeated(NODE, nodes[name])))
        assert name in machine.labs
        assert machine.free(instances) >= SPARE
    labs.end()
    assert machine.labs == {}


def test_labs_run_side_by_side_where_there_is_room_and_the_one_used_last_stays_where_there_is_not() -> None:
    machine = Machine(3 * preflight.instances(1, 1) + SPARE)
    labs = Labs(machine.start, machine.free)
    for name in ("first", "second", "third", "first", "fourth"):
        labs.of(lab(name, (NODE,)))
    assert set(machine.labs) == {"third", "first", "fourth"}


@given(st.integers(1, 30), st.integers(preflight.instances(1, 1) + SPARE, 4 * ENOUGH))
def test_a_lab_that_is_too_large_comes_in_batches_that_fit_and_have_every_node_once(count: int, instances: int) -> None:
    machine = Machine(instances)
    labs = Labs(machine.start, machine.free)
    labs.of(lab("other", (NODE,)))
    nodes = spec.repeated(NODE, count)
    found: list[NodeSpec] = []
    for batch in labs.batches(nodes):
        with machine.start(lab("batch", batch)):
            found += batch
    assert tuple(found) == nodes


def test_a_lab_that_failed_to_start_is_not_tried_again() -> None:
    machine = Machine(preflight.instances(1, 1))
    labs = Labs(machine.start, machine.free)
    with pytest.raises(LabError):
        labs.of(lab("large", spec.repeated(NODE, 2)))
    machine.instances = ENOUGH
    with pytest.raises(AssertionError, match="large could not be started"):
        labs.of(lab("large", spec.repeated(NODE, 2)))


@pytest.mark.parametrize("instances, whole", [(64, False), (128, True)])
def test_the_shared_lab_has_all_nodes_or_those_that_tests_name(instances: int, whole: bool) -> None:
    machine = Machine(instances)
    labs = Labs(machine.start, machine.free)
    for _ in range(2):
        found = cast(LabSpec, tales.shared(labs))
        assert found.nodes == (fleet.nodes() if whole else fleet.named())
