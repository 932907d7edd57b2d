"""Making a case small without losing what makes it interesting."""

from typing import Any

from numalign.oracle import shrink

CASE: dict[str, Any] = {
    "id": "x",
    "options": {"full-pcpus-only": "true", "align-by-socket": "true"},
    "pod": {"uid": "pod", "init": [{"name": "i0"}], "containers": [{"name": "c0"}, {"name": "c1"}]},
    "steps": [{"container": "i0"}, {"container": "c0"}, {"container": "c1"}],
    "removals": [{"container": "c1"}, {"container": "i0"}],
}
LIVES: dict[str, Any] = {
    "pods": [{"uid": "a", "containers": [{"name": "c0"}]}, {"uid": "b", "containers": [{"name": "c0"}]}],
    "ops": [{"op": "pod_hints", "pod": "a"}, {"op": "allocate", "pod": "b", "container": "c0"}],
}


def names(case: dict[str, Any]) -> set[str]:
    return {each["name"] for key in ("init", "containers") for each in case["pod"].get(key, ())}


def test_everything_that_is_not_needed_goes() -> None:
    small = shrink.shrunk(CASE, lambda case: "c1" in names(case))
    assert names(small) == {"c1"}
    assert small["options"] == {}


def test_steps_and_removals_go_with_their_container() -> None:
    small = shrink.shrunk(CASE, lambda case: "c1" in names(case))
    assert [step["container"] for step in small["steps"]] in ([], ["c1"])
    assert {removal["container"] for removal in small["removals"]} <= {"c1"}


def test_ops_go_with_their_pod() -> None:
    small = shrink.shrunk(LIVES, lambda case: any(pod["uid"] == "b" for pod in case["pods"]))
    assert all(op["pod"] == "b" for op in small["ops"])


def test_a_case_that_only_differs_as_a_whole_stays_whole() -> None:
    assert shrink.shrunk(CASE, lambda case: False) == CASE


def test_the_original_is_not_touched() -> None:
    before = repr(CASE)
    shrink.shrunk(CASE, lambda case: True)
    assert repr(CASE) == before


def test_the_number_of_tries_is_bounded() -> None:
    asked: list[object] = []

    def never(case: object) -> bool:
        asked.append(case)
        return False

    shrink.shrunk(CASE, never, tries=5)
    assert len(asked) < 5


def test_the_last_container_is_never_dropped() -> None:
    assert all(candidate["pod"]["containers"] for candidate in shrink.reductions(CASE))
