"""Our reference flavour beside the plugin's v0.34.7, history by history: recorded, written by hand, and made up."""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from numalign.oracle import sources
from numalign.oracle.harness import files
from numalign.oracle.harness.ask import Opinion, OracleProgram
from numalign.oracle.plugin import judge
from tests.oracle import againstreal, handmade, recordings

KIND = ("apiVersion", "kind")
"""Clients drop these of a report, and the oracle program puts them back."""
FOUND = sorted(Path(__file__).with_name("found").glob("reference/*.json"))
DOCS = Path(__file__).parents[2] / "docs"
NAMES = "compatibility/plugin.md", "compatibility/plugin-caches.md", "develop/oracle-reference.md"
PAGES = [(DOCS / name).read_text() for name in NAMES]


@cache
def recorded() -> list[dict[str, Any]]:
    return [found.value for found in files.values(recordings.DATA / "reference-histories.xz")]


@cache
def opinions() -> list[Opinion]:
    return list(map(judge.opinion, recorded()))


def test_every_recorded_answer_is_agreed_with_or_differs_on_purpose() -> None:
    wrong = {each["id"]: found.differences for each, found in zip(recorded(), opinions(), strict=True)}
    assert {name: differences for name, differences in wrong.items() if differences} == {}


def test_most_histories_go_the_same_way_with_the_product() -> None:
    counts = Counter(bool(found.entries) for found in opinions())
    assert counts[False] > 600


@pytest.mark.parametrize("path", FOUND, ids=[path.stem for path in FOUND])
def test_what_was_once_found_is_agreed_with_or_differs_on_purpose(path: Path) -> None:
    (found,) = files.values(path)
    assert judge.opinion(found.value).differences == ()


def is_documented(entry: str) -> bool:
    number = entry.removeprefix("difference ")
    return any(f"### {entry}\n" in page or (number != entry and f"\n| {number} | " in page) for page in PAGES)


def test_every_entry_is_documented() -> None:
    shown = {entry for found in opinions() for entry in found.entries} | set(map(handmade.entry, handmade.HISTORIES))
    assert [entry for entry in shown - {"settings"} if not is_documented(entry)] == []


def wrong(answer: Any) -> Iterator[Any]:
    """The answer with one thing changed, for every thing in it; an empty text may as well be left out."""
    match answer:
        case dict() if "panic" in answer:
            yield {"score": 0}
        case dict():
            for key, each in ((key, answer[key]) for key in answer if key not in KIND):
                yield from [{name: answer[name] for name in answer if name != key}] if each != "" else []
                yield from ({**answer, key: changed} for changed in wrong(each))
        case list():
            yield [*answer, "more"]
            for place, each in enumerate(answer):
                yield from ([*answer[:place], changed, *answer[place + 1 :]] for changed in wrong(each))
        case bool():
            yield not answer
        case int():
            yield answer + 1
        case str():
            yield f"{answer}x"


def unnoticed(history: dict[str, Any]) -> list[Any]:
    changed = (
        {**history, "steps": [*history["steps"][:place], {**step, "answer": answer}, *history["steps"][place + 1 :]]}
        for place, step in enumerate(history["steps"])
        for answer in wrong(step.get("answer"))
    )
    return [each for each in changed if judge.judge(each, each).finding != "differs"]


@pytest.mark.parametrize("every", [pytest.param(60, id="quick"), pytest.param(1, id="all", marks=pytest.mark.slow)])
def test_a_wrong_answer_is_noticed(every: int) -> None:
    agreed = [each for each, found in zip(recorded(), opinions(), strict=True) if not found.entries]
    assert {each["id"]: missed for each in agreed[::every] if (missed := unnoticed(each))} == {}


@pytest.mark.built
def test_the_real_plugin_shows_what_was_written_by_hand() -> None:
    againstreal.require_go("the reference scheduler's plugin")
    with OracleProgram(sources.reference().program()) as program:
        answers = program.ask([("reference", history) for history in handmade.HISTORIES.values()])
    shown = {name: judge.opinion(answer) for name, answer in zip(handmade.HISTORIES, answers, strict=True)}
    assert shown == {name: Opinion(entries=frozenset({handmade.entry(name)})) for name in handmade.HISTORIES}


@pytest.mark.built
@againstreal.seeds
@pytest.mark.parametrize("cases", [pytest.param(1_000, id="quick"), againstreal.campaign()])
def test_the_real_plugin_and_the_reference_flavour_agree(seed: int, cases: int) -> None:
    againstreal.require_go("the reference scheduler's plugin")
    againstreal.agreeing(sources.reference(), seed, cases)
