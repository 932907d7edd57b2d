"""Our rules beside the plugins of kube-scheduler v1.37.1, cluster by cluster: recorded, found, and made up."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from numalign.oracle import sources
from numalign.oracle.harness import files
from numalign.oracle.kubescheduler import answer as answering
from numalign.oracle.kubescheduler import answer as stages
from numalign.oracle.kubescheduler import judge
from tests.oracle import againstreal, recordings

FILES = sorted(recordings.DATA.glob("scheduler-*.json.gz"))
FOUND = sorted(Path(__file__).with_name("found").glob("scheduler/*.json"))
DOCS = Path(__file__).parents[2] / "docs"
PAGES = [(DOCS / name).read_text() for name in ("develop/oracle-scheduler.md", "compatibility/scheduler-rules.md")]
NOT_COMPARED = ("skipped", "plugin")
FILTERS = (
    *("NodeName", "NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit"),
    *("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"),
    *("PodTopologySpread", "InterPodAffinity", "NodeDeclaredFeatures"),
)
SCORES = (
    *("TaintToleration", "NodeAffinity", "NodeResourcesFit", "NodeResourcesBalancedAllocation"),
    *("VolumeBinding", "PodTopologySpread", "InterPodAffinity", "ImageLocality"),
)


@cache
def recorded() -> list[dict[str, Any]]:
    return [found.value for path in FILES for found in files.values(path)]


def answers() -> Iterator[dict[str, Any]]:
    return (question["answer"] for case in recorded() for question in case["questions"])


@pytest.mark.parametrize("path", FILES, ids=[path.name for path in FILES])
def test_every_recorded_answer_is_agreed_with_or_differs_on_purpose(path: Path) -> None:
    cases = [found.value for found in files.values(path)]
    wrong = {case["id"]: found.differences for case in cases if (found := judge.opinion(case)).differences}
    assert wrong == {}


@pytest.mark.parametrize("path", FOUND, ids=[path.stem for path in FOUND])
def test_what_was_once_found_is_agreed_with_or_differs_on_purpose(path: Path) -> None:
    (found,) = files.values(path)
    assert judge.opinion(found.value).differences == ()


@pytest.mark.parametrize("plugin", FILTERS)
def test_every_filter_refuses_in_the_recordings(plugin: str) -> None:
    refused = (plugin in said for answer in answers() for said in answer["filters"].values())
    assert sum(refused) > 10


@pytest.mark.parametrize("plugin", SCORES)
def test_every_score_tells_nodes_apart_in_the_recordings(plugin: str) -> None:
    scores = (answer["scores"]["raw"].get(plugin, {}) for answer in answers() if "scores" in answer)
    assert any(len(set(of_nodes.values())) > 1 for of_nodes in scores)


def test_every_entry_was_found() -> None:
    shown = (judge.opinion(found.value).entries for path in FOUND for found in files.values(path))
    assert set().union(*shown) == {each.anchor for each in judge.ENTRIES}


def test_every_entry_is_documented() -> None:
    anchors = {each.anchor for each in judge.ENTRIES}
    assert {anchor for anchor in anchors if not any(f"### {anchor}\n" in page for page in PAGES)} == set()


def wrong(answer: Any) -> Iterator[Any]:
    """The answer with one thing changed, for every thing in it that counts."""
    match answer:
        case dict():
            for key, each in answer.items():
                if key not in NOT_COMPARED:
                    yield from ({**answer, key: changed} for changed in wrong(each))
        case list():
            yield [*answer, "more"]
            for place, each in enumerate(answer):
                yield from ([*answer[:place], changed, *answer[place + 1 :]] for changed in wrong(each))
        case int():
            yield answer + 1
        case str():
            yield f"{answer}x"


@pytest.mark.parametrize("place", range(0, 80, 10))
def test_a_wrong_answer_is_noticed(place: int) -> None:
    case = recorded()[place]
    question = case["questions"][0]
    ours = answering.answer(stages.build(case), question)
    changed = list(wrong(question["answer"]))
    assert len(changed) > 3
    assert all(judge.between(each, ours) for each in changed)


@pytest.mark.built
@againstreal.seeds
@pytest.mark.parametrize("cases", [pytest.param(200, id="quick"), againstreal.campaign()])
def test_the_real_plugins_and_our_rules_agree(seed: int, cases: int) -> None:
    againstreal.require_go("the real scheduler's plugins")
    againstreal.agreeing(sources.scheduler(), seed, cases)
