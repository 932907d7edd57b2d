"""Making a case small without losing what makes it interesting, or what makes it a case."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.kubelet.refusals import Undecided
from numalign.kubelet.versions import Minor
from numalign.oracle.harness import shrink as generic
from numalign.oracle.harness.divergence import Case
from numalign.oracle.kubelet import shrink, validity, vectors
from numalign.oracle.kubelet.family import CaseOrigin
from numalign.oracle.kubelet.generate import cases

NEW = Minor(1, 37)

CASE: dict[str, Any] = {
    "id": "x",
    "options": {"full-pcpus-only": "true", "align-by-socket": "true"},
    "pod": {"uid": "pod", "init": [{"name": "i0"}], "containers": [{"name": "c0"}, {"name": "c1"}]},
    "steps": [{"container": "i0"}, {"container": "c0"}, {"container": "c1"}],
    "removals": [{"container": "c1"}, {"container": "i0"}, {"container": "c0"}],
}
LIVES: dict[str, Any] = {
    "pods": [{"uid": "a", "containers": [{"name": "c0"}]}, {"uid": "b", "containers": [{"name": "c0"}]}],
    "ops": [{"op": "pod_hints", "pod": "a"}, {"op": "allocate", "pod": "b", "container": "c0"}],
}
drawn = st.builds(lambda seed, number: cases.draw(seed, number, NEW), st.integers(0, 10**6), st.integers(0, 10**6))


def shrunk(case: dict[str, Any], still_differs: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    return generic.shrunk(case, still_differs, shrink.smaller)


def names(case: dict[str, Any]) -> set[str]:
    return {each["name"] for key in ("init", "containers") for each in case["pod"].get(key, ())}


def test_everything_that_is_not_needed_goes() -> None:
    small = shrunk(CASE, lambda case: "c1" in names(case))
    assert names(small) == {"c1"}
    assert small["options"] == {}


def test_steps_and_removals_go_with_their_container() -> None:
    small = shrunk(CASE, lambda case: "c1" in names(case))
    assert small["steps"] == small["removals"] == [{"container": "c1"}]


def test_ops_go_with_their_pod() -> None:
    small = shrunk(LIVES, lambda case: any(pod["uid"] == "b" for pod in case["pods"]))
    assert all(op["pod"] == "b" for op in small["ops"])


def test_a_case_that_only_differs_as_a_whole_stays_whole() -> None:
    assert shrunk(CASE, lambda case: False) == CASE


def test_the_original_is_not_touched() -> None:
    before = repr(CASE)
    shrunk(CASE, lambda case: True)
    assert repr(CASE) == before


def test_the_number_of_tries_is_bounded() -> None:
    asked: list[object] = []

    def never(case: object) -> bool:
        asked.append(case)
        return False

    generic.shrunk(CASE, never, shrink.smaller, tries=5)
    assert len(asked) < 5


def test_the_last_container_is_never_dropped() -> None:
    assert all(candidate["pod"]["containers"] for candidate in shrink.smaller(CASE))


@given(drawn)
@settings(max_examples=40)
def test_whatever_is_offered_is_a_valid_case_with_something_less(drawn: tuple[str, Case]) -> None:
    _, case = drawn
    for candidate in shrink.smaller(case):
        assert validity.flaws(candidate) == frozenset()
        assert candidate != case


@given(drawn, st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_the_model_can_answer_whatever_is_offered(drawn: tuple[str, Case], rng: Any) -> None:
    family = next(each for each in vectors.FAMILIES if each.name == drawn[0])
    offered = list(shrink.smaller(drawn[1]))
    for candidate in rng.sample(offered, min(5, len(offered))):
        with suppress(Undecided):
            assert family.answer(vectors.typed(family.case, candidate), CaseOrigin({}, NEW)) is not None


@pytest.mark.parametrize("family", cases.WEIGHTS)
def test_a_case_about_nothing_ends_up_tiny(family: str) -> None:
    (case,) = [case for each, case in (cases.draw(6, n, NEW) for n in range(400)) if each == family][:1]
    small = shrunk(case, lambda candidate: True)
    assert not list(shrink.smaller(small))
    assert len(repr(small)) < 1_200


def test_a_case_that_was_flawed_already_can_still_shrink() -> None:
    flawed = {**CASE, "steps": CASE["steps"][:1]}
    assert validity.flaws(flawed)
    assert len(names(shrunk(flawed, lambda case: "c1" in names(case)))) < 3
