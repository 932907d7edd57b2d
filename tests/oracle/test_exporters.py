"""Our modules beside the programs that publish topology reports, row by row: recorded, found, and made up."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from numalign.oracle import recorded as judging
from numalign.oracle import recorded as recordedsuites
from numalign.oracle import sources
from numalign.oracle.harness import files as loading
from numalign.oracle.harness import suite
from numalign.oracle.harness.ask import OracleProgram
from numalign.oracle.publishers import cases
from numalign.oracle.publishers import cases as exporting
from numalign.oracle.recorded import RecordedCase
from tests.oracle import againstreal, exportercases

FOUND = [
    path for name in sources.PUBLISHERS for path in sorted(Path(__file__).with_name("found").glob(f"{name}/*.json"))
]
DERIVED = "_derived"
ASKED = {name for tables in cases.PROGRAMS.values() for name in tables}
"""Tables that the programs can be asked about; rows that were worked out have a table of their own."""

programs = pytest.mark.parametrize("program", sources.PUBLISHERS)
files = pytest.mark.parametrize("path", exportercases.FILES.values(), ids=exportercases.FILES)


def built(program: str) -> sources.Source:
    againstreal.require_go("the packages of RTE and NFD")
    return sources.publisher(program)


def table(suite: str) -> str | None:
    """The name under which the programs answer rows of this table."""
    return next((each for each in (suite, suite.removesuffix(DERIVED)) if each in ASKED), None)


def question(recorded: RecordedCase) -> dict[str, Any]:
    given = dict(recorded.case["input"])
    if "config" in given:
        given["asked"] = recorded.case["expect"]["excluded"] + recorded.case["expect"]["kept"]
    return {"id": recorded.id, "suite": table(recorded.suite), "input": given}


@pytest.mark.built
@files
def test_the_real_programs_give_the_recorded_answers(path: Path) -> None:
    recorded = [each for each in exportercases.cases(path) if table(each.suite)]
    with OracleProgram(built("rte").program()) as program:
        answers = program.ask([(each.suite, question(each)) for each in recorded])
    told = [answer.get("expect", answer) for answer in answers]
    assert [
        {name: each.get(name) for name in row.case["expect"]} for row, each in zip(recorded, told, strict=True)
    ] == [row.case["expect"] for row in recorded]


@programs
@pytest.mark.built
@againstreal.seeds
@pytest.mark.parametrize("rows", [pytest.param(600, id="quick"), againstreal.campaign()])
def test_the_real_program_and_our_form_of_it_agree(program: str, seed: int, rows: int) -> None:
    assert againstreal.agreeing(built(program), seed, rows).compared == rows


@pytest.mark.parametrize("path", FOUND, ids=[f"{path.parent.name}/{path.stem}" for path in FOUND])
def test_what_was_once_found_is_agreed_with_or_differs_on_purpose(path: Path) -> None:
    (found,) = loading.values(path)
    assert exporting.judge(found.value, found.value).finding in ("agreed", "deliberate")


def test_every_rule_for_a_difference_was_shown_by_the_real_programs() -> None:
    found = [each.value for path in FOUND for each in loading.values(path)]
    shown = {suite.judged(recordedsuites.SUITES[each["suite"]], each).anchor for each in found}
    shown |= {judging.judge(each).anchor for each in exportercases.cases(exportercases.VENDORED)}
    assert {rule.anchor for name in ASKED for rule in recordedsuites.SUITES[name].deliberate} <= shown


def emptied(value: Any) -> Any:
    """Null for every list without an item, but where the two are different things."""
    match value:
        case dict():
            return {key: each if key in ("numa", "instances") else emptied(each) for key, each in value.items()}
        case list():
            return [emptied(each) for each in value] or None
    return value


@files
@pytest.mark.parametrize("change", [emptied, lambda row: {**row, "remark": "x"}], ids=["null", "another column"])
def test_null_and_columns_that_nobody_knows_change_nothing(path: Path, change: Any) -> None:
    for each in exportercases.cases(path):
        changed = structs.replace(each, case={**each.case, "input": change(each.case["input"])})
        assert (each.id, judging.judge(changed).outcome) == (each.id, judging.judge(each).outcome)
