from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.simulator.controllers.blindscheduler.asking import Ask
from numalign.simulator.controllers.blindscheduler.totals import Totals

# Kube-scheduler spec A.2, equal weights: capacity, used, pod, score.
SCORES = {
    "empty": ((4000, 10000), (0, 0), (3000, 5000), 37),
    "half": ((6000, 10000), (0, 0), (3000, 5000), 50),
    "used": ((10000, 20000), (6000, 5000), (0, 0), 57),
    "both": ((10000, 20000), (3000, 5000), (3000, 5000), 45),
    "large": ((8000, 32 << 30), (4000, 8 << 30), (2000, 4 << 30), 43),
    "nothing asked": ((8000, 32 << 30), (0, 0), (100, 200 << 20), 98),
    "over": ((1000, 1000), (900, 0), (200, 0), 50),
}


@pytest.mark.parametrize("capacity, used, pod, score", SCORES.values(), ids=SCORES)
def test_least_allocated(capacity: tuple[int, int], used: tuple[int, int], pod: tuple[int, int], score: int) -> None:
    totals = Totals()
    totals.put("a", {"cpu": capacity[0], "memory": capacity[1], "pods": 10})
    totals.charge("a", ("", "p"), Ask((), used))
    assert totals.least_allocated(Ask((), pod))[totals.rows["a"]] == score


NODE, POD = st.sampled_from("abc"), st.sampled_from("pqrs")
RESOURCE = st.sampled_from(["cpu", "memory", "gpu", "nic", "hugepages-2Mi"])
AMOUNT = st.dictionaries(RESOURCE, st.integers(1, 9), max_size=3)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), NODE, AMOUNT),
        st.tuples(st.just("drop"), NODE),
        st.tuples(st.just("charge"), NODE, POD, AMOUNT),
        st.tuples(st.just("release"), NODE, POD),
    ),
    max_size=40,
)


class Plain:
    """The same in dictionaries."""

    def __init__(self) -> None:
        self.totals = Totals()
        self.offered: dict[str, dict[str, int]] = {}
        self.held: dict[tuple[str, str], dict[str, int]] = {}

    def apply(self, step: tuple[Any, ...]) -> None:
        match step:
            case ("put", node, amounts):
                self.totals.put(node, amounts | {"pods": 2})
                self.offered[node] = amounts
            case ("drop", node):
                self.totals.drop(node)
                self.offered.pop(node, None)
            case ("charge", node, pod, amounts):
                self.totals.charge(node, ("", pod), Ask(tuple(amounts.items()), (0, 0)))
                self.held[node, pod] = amounts
            case ("release", node, pod):
                was_held = self.held.pop((node, pod), None) is not None
                assert self.totals.release(node, ("", pod)) == was_held

    def has_room(self, name: str, wanted: dict[str, int]) -> bool:
        taken = [pod for (node, _), pod in self.held.items() if node == name]
        left = {each: self.offered[name].get(each, 0) - sum(pod.get(each, 0) for pod in taken) for each in wanted}
        return len(taken) < 2 and all(left[each] >= wanted[each] for each in wanted)


@given(STEPS, AMOUNT)
def test_the_arrays_agree_with_plain_sums(steps: list[tuple[Any, ...]], wanted: dict[str, int]) -> None:
    plain = Plain()
    for step in steps:
        plain.apply(step)
    totals = plain.totals
    room = totals.room(Ask(tuple(wanted.items()), (0, 0))) & totals.there
    for name in plain.offered:
        assert room[totals.rows[name]] == plain.has_room(name, wanted)
    assert int(np.count_nonzero(totals.there)) == len(plain.offered)


def test_more_nodes_than_rows() -> None:
    totals = Totals()
    for number in range(300):
        totals.put(f"n{number}", {"cpu": number, "pods": 1})
    assert int((totals.room(Ask((("cpu", 150),), (0, 0))) & totals.there).sum()) == 150
    assert totals.name_of(totals.rows["n299"]) == "n299"


def test_a_heartbeat_changes_nothing() -> None:
    totals = Totals()
    assert totals.put("a", {"cpu": 1, "pods": 1})
    assert not totals.put("a", {"cpu": 1, "pods": 1})
    assert totals.put("a", {"cpu": 1, "pods": 1, "gpu": 1})
