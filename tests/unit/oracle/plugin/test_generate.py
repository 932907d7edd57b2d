"""Made-up histories of a cluster: repeatable, rich in what can happen, and small when they have to be."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from numalign.api.decode import decode
from numalign.api.objects import pod as pods
from numalign.api.objects import qos
from numalign.oracle.harness import files, shrink
from numalign.oracle.plugin.generate import histories
from numalign.oracle.plugin.generate.histories import CACHE_SETTINGS, STRATEGIES
from tests.oracle import recordings

RECORDED = recordings.DATA / "reference-histories.xz"
DRAWN = [histories.draw(3, number)[1] for number in range(400)]
OPS = {
    "nrt_update",
    "nrt_delete",
    "pod_add",
    "pod_update",
    "pod_delete",
    "filter",
    "score",
    "reserve",
    "unreserve",
    "postbind",
    "resync",
    "desynced",
    "get_nrt",
    "node_rejected",
    "node_has_foreign_pods",
}


def steps(drawn: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return (step for history in drawn for step in history["steps"])


def test_the_same_seed_makes_the_same_histories() -> None:
    assert DRAWN[:50] == [histories.draw(3, number)[1] for number in range(50)]
    assert DRAWN[0] != histories.draw(4, 0)[1]


def test_everything_that_can_happen_happens() -> None:
    assert {step["op"] for step in steps(DRAWN)} == OPS


@pytest.mark.parametrize("setting", CACHE_SETTINGS)
def test_every_setting_of_the_cache_takes_every_value(setting: str) -> None:
    seen = {history["args"].get("cache", {}).get(setting) for history in DRAWN}
    assert seen > set(CACHE_SETTINGS[setting])


def test_every_cache_and_strategy_is_drawn() -> None:
    args = [history["args"] for history in DRAWN]
    assert {each.get("scoringStrategy", {}).get("type") for each in args} >= set(STRATEGIES)
    assert {
        (each.get("discardReservedNodes", False), each.get("cacheResyncPeriodSeconds", 0) > 0) for each in args
    } >= {
        (True, False),
        (False, True),
        (False, False),
    }


def test_pods_of_every_class_come() -> None:
    asked = [decode.decode(pods.Pod, step["pod"]) for step in steps(DRAWN) if step["op"] == "filter"]
    classes: Counter[str] = Counter(qos.of(pod) for pod in asked)
    assert all(classes[name] > 20 for name in ("Guaranteed", "Burstable", "BestEffort"))


def test_whatever_is_dropped_a_shorter_history_is_left() -> None:
    for candidate in histories.smaller(DRAWN[0]):
        assert len(str(candidate)) < len(str(DRAWN[0]))
        assert candidate.keys() <= DRAWN[0].keys()


def test_a_history_shrinks_to_the_step_that_matters() -> None:
    history = next(each for each in DRAWN if any(step["op"] == "score" for step in each["steps"]))
    small = shrink.shrunk(history, lambda case: any(s["op"] == "score" for s in case["steps"]), histories.smaller)
    assert [step["op"] for step in small["steps"]] == ["score"]
    assert small["nodes"] == small["nrts"] == []


def test_a_thousand_histories_were_recorded_with_an_answer_to_everything() -> None:
    recorded = [found.value for found in files.values(RECORDED)]
    assert len({history["id"] for history in recorded}) == 1_000
    played = [history for history in recorded if "init_error" not in history]
    assert len(played) > 950
    assert all("answer" in step for step in steps(played) if step["op"] in ("filter", "score", "reserve", "get_nrt"))
