"""What a campaign says at its end."""

from collections import Counter

import pytest

from numalign.cli.devkit import replays
from numalign.oracle.fuzz import FuzzSummary


@pytest.mark.parametrize(
    "asked, told", [(24, ["24 questions"]), (2, [])], ids=["many questions in a case", "one question in a case"]
)
def test_questions_are_told_where_a_case_has_several(asked: int, told: list[str]) -> None:
    page = replays.fuzz_table(FuzzSummary(counts=Counter({("scheduler", "agreed"): 2}), asked=asked))
    *_, last = lines = page.splitlines()
    assert [line for line in lines if "questions" in line] == told
    assert last == "2 cases, 0 disagreements"
