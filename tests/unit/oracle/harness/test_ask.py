"""Talking to a child process that answers cases line by line."""

import sys
from pathlib import Path

import pytest

from numalign.oracle.harness.ask import OracleProgram, ProgramError

ECHO = """#!{python}
import json, sys
for line in sys.stdin:
    case = json.loads(line)
    print(json.dumps({{"id": case["id"], "family": case["family"], "size": len(line)}}), flush=True)
"""
ENDS = """#!{python}
import sys
sys.stdin.readline()
print("no namespace for me", file=sys.stderr)
"""
BABBLES = """#!{python}
import sys
for line in sys.stdin:
    print("[]", flush=True)
"""


def program(folder: Path, script: str) -> OracleProgram:
    path = folder / "oracle"
    path.write_text(script.format(python=sys.executable))
    path.chmod(0o755)
    return OracleProgram(path)


def test_answers_come_in_the_order_of_the_cases(tmp_path: Path) -> None:
    with program(tmp_path, ECHO) as oracle:
        answers = oracle.ask([("tm_merge", {"id": str(number)}) for number in range(50)])
    assert [answer["id"] for answer in answers] == [str(number) for number in range(50)]
    assert answers[0]["family"] == "tm_merge"


def test_more_than_a_pipe_holds_can_be_asked_at_once(tmp_path: Path) -> None:
    with program(tmp_path, ECHO) as oracle:
        answers = oracle.ask([("x", {"id": "a", "text": "x" * 300_000}) for _ in range(20)])
    assert len(answers) == 20


def test_a_program_that_ends_is_told_with_its_last_words(tmp_path: Path) -> None:
    with program(tmp_path, ENDS) as oracle, pytest.raises(ProgramError, match="oracle ended: no namespace for me"):
        oracle.ask([("x", {"id": "a"}), ("x", {"id": "b"})])


def test_something_else_than_an_answer_is_refused(tmp_path: Path) -> None:
    with program(tmp_path, BABBLES) as oracle, pytest.raises(ProgramError, match="which is not a case"):
        oracle.ask([("x", {"id": "a"})])
