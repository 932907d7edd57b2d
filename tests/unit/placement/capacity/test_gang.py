"""A list of pods fits as a whole where every one of them is admitted beside the others."""

from __future__ import annotations

from collections.abc import Callable, Generator

from hypothesis import given
from hypothesis import strategies as st

from numalign.placement.capacity import gang
from numalign.placement.capacity.gang import GangFit, Room
from numalign.placement.columns.shapes import Shape
from numalign.placement.engine import Engine
from tests.unit.placement.test_engine import engine, pod


def run(steps: Generator[None, None, GangFit | None], between: Callable[[], None] = lambda: None) -> GangFit | None:
    """The result of a search, before each step of which something else happens."""
    while True:
        between()
        try:
            next(steps)
        except StopIteration as end:
            found: GangFit | None = end.value
            return found


def fitted(known: Engine, shapes: list[tuple[Shape, int]]) -> GangFit:
    found = run(gang.fitting(known, shapes, [None] * len(shapes)))
    assert found is not None, "nothing changes meanwhile"
    return found


def fit(known: Engine, **wanted: int) -> GangFit:
    """Pods by name `cpuN` with so many CPUs, and their number."""
    shapes = [(known.shape(pod(name, cpu=int(name[3:]))), number) for name, number in wanted.items()]
    return fitted(known, shapes)


def test_equal_pods_fit_where_the_counts_add_up() -> None:
    """Two zones of 8 CPUs on each node."""
    assert fit(engine("a", "b"), cpu6=4).room is Room.FITS
    assert fit(engine("a", "b"), cpu6=5) == GangFit(room=Room.DOES_NOT_FIT, missing=(1,))


def test_pods_of_several_shapes_share_nodes() -> None:
    found = fit(engine("a"), cpu4=2, cpu2=2)
    assert found.room is Room.FITS
    assert found.placed == {0: {0: 2, 1: 2}}


def test_pods_that_an_unlucky_order_of_arrival_leaves_without_a_zone_do_not_share_a_node() -> None:
    """Where both small pods arrive first, they share a zone with no large one."""
    assert fit(engine("a"), cpu6=2, cpu2=2).room is Room.NOT_FOUND
    assert fit(engine("a", "b"), cpu6=2, cpu2=2).room is Room.FITS


def test_shapes_that_fit_alone_and_not_together_are_not_called_impossible() -> None:
    found = fit(engine("a"), cpu8=2, cpu2=1)
    assert found.room is Room.NOT_FOUND
    assert sum(found.missing) == 1


@given(st.dictionaries(st.sampled_from(["cpu1", "cpu2", "cpu3", "cpu4", "cpu6"]), st.integers(0, 6), max_size=3))
def test_pods_of_a_list_that_fits_are_placed_one_by_one(wanted: dict[str, int]) -> None:
    """In the order in which the answer lists them, on the nodes that it names."""
    known = engine("a", "b", trust_bind_order=True)
    found = fit(known, **wanted)
    names, serial = list(wanted), 0
    for row, own in found.placed.items():
        for place, number in own.items():
            for _ in range(number):
                serial += 1
                mine = pod(f"p{serial}", cpu=int(names[place][3:]))
                assert known.place(mine, known.shape(mine), row, 0.0) is not None
    if found.room is Room.FITS:
        assert serial == sum(wanted.values())


@given(
    st.dictionaries(st.sampled_from(["cpu1", "cpu2", "cpu3", "cpu4", "cpu6"]), st.integers(1, 6), max_size=3),
    st.integers(0, 30),
    st.sampled_from(["a", "b", "c"]),
)
def test_what_is_found_while_another_pod_takes_room_holds_beside_that_pod(
    wanted: dict[str, int], step: int, node: str
) -> None:
    known = engine("a", "b", "c", trust_bind_order=True)
    shapes = [(known.shape(pod(name, cpu=int(name[3:]))), number) for name, number in wanted.items()]
    other, turns = pod("other", cpu=6), list[int]()

    def happens() -> None:
        if len(turns) == step:
            assert known.place(other, known.shape(other), known.rows[node], 0.0) is not None
        turns.append(1)

    found = run(gang.fitting(known, shapes, [None] * len(shapes)), happens)
    if found is None:
        assert len(turns) > step, "something has changed"
        return
    serial = 0
    for row, own in found.placed.items():
        for place, pods in own.items():
            for _ in range(pods):
                serial += 1
                mine = pod(f"p{serial}", cpu=int(list(wanted)[place][3:]))
                assert known.place(mine, known.shape(mine), row, 0.0) is not None


def test_where_a_node_is_used_by_another_pod_the_search_ends_without_an_answer() -> None:
    known = engine("a", trust_bind_order=True)
    shapes = [(known.shape(pod("cpu4", cpu=4)), 1), (known.shape(pod("cpu2", cpu=2)), 1)]
    steps = gang.fitting(known, shapes, [None, None])
    for _ in range(4):
        next(steps)
    other = pod("other", cpu=1)
    known.place(other, known.shape(other), known.rows["a"], 0.0)
    assert run(steps) is None
    assert fitted(known, shapes).room is Room.FITS
