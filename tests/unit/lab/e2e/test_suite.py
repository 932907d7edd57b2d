"""Running e2e.test: a program in its place prints what Ginkgo prints, and writes a report as Ginkgo does."""

from __future__ import annotations

import asyncio
import json
import re
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from numalign.lab.e2e import suite
from numalign.lab.e2e.suite import SpecResult, Suite
from numalign.lab.errors import LabError

EVERYTHING = re.compile("")
NAME = "[sig-scheduling] SchedulerPredicates validates taints [Serial]"
PRINTED = f"""\
Will run 2 of 3206 specs
SSSSSSSSSSSS
------------------------------
{NAME} [sig-scheduling, Serial]
k8s.io/kubernetes/test/e2e/scheduling/predicates.go:589
  STEP: doing it
• [4.250 seconds]
------------------------------
SS
------------------------------
[sig-scheduling] Multi-AZ Clusters should spread [sig-scheduling]
S [SKIPPED] [0.010 seconds]
[sig-scheduling] Multi-AZ Clusters [BeforeEach] should spread [sig-scheduling]
------------------------------
[sig-scheduling] LimitRange lists [sig-scheduling, Conformance]
• [FAILED] [61.000 seconds]
"""


def spec(text: str, state: str, attempts: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "ContainerHierarchyTexts": ["[sig-scheduling] Group"],
        "ContainerHierarchyLabels": [["sig-scheduling"]],
        "LeafNodeType": "It",
        "LeafNodeText": text,
        "LeafNodeLabels": None,
        "State": state,
        "NumAttempts": attempts,
        "RunTime": 1_500_000_000,
        **more,
    }


def report(*specs: dict[str, Any]) -> bytes:
    return json.dumps([{"SuiteDescription": "e2e", "SpecReports": list(specs)}]).encode()


@pytest.mark.parametrize(
    "state, outcome",
    [
        ("passed", "passed"),
        ("failed", "failed"),
        ("panicked", "failed"),
        ("timedout", "failed"),
        ("skipped", "skipped"),
    ],
)
def test_a_state_of_ginkgo_is_an_outcome(state: str, outcome: str) -> None:
    (found,) = suite.read(report(spec("one", state)), EVERYTHING)
    assert (found.name, found.outcome, found.seconds) == ("[sig-scheduling] Group one", outcome, 1.5)


def test_a_test_of_a_feature_that_is_off_says_which_gate_it_needs() -> None:
    labels = ["FeatureGate:GenericWorkload", "Beta", "Feature:OffByDefault"]
    (found,) = suite.read(report(spec("one", "skipped", attempts=0, LeafNodeLabels=labels)), EVERYTHING)
    assert (found.outcome, found.why) == ("not run", "needs the feature gate GenericWorkload")


def test_a_failure_is_shown_in_one_line() -> None:
    (found,) = suite.read(report(spec("one", "failed", Failure={"Message": "timed out\n\n  waiting\n"})), EVERYTHING)
    assert found.why == "timed out; waiting"


def test_only_tests_are_results_and_only_those_in_the_focus() -> None:
    before = spec("", "passed", LeafNodeType="SynchronizedBeforeSuite")
    found = suite.read(
        report(before, spec("b", "passed"), spec("a", "passed"), spec("c", "passed")), re.compile("[ab]$")
    )
    assert [each.name[-1] for each in found] == ["a", "b"]


@pytest.mark.parametrize("text", [b"", b"{", b"[7]", b'[{"SpecReports":[{"RunTime":"long"}]}]'])
def test_a_report_that_is_none_is_an_error_that_says_so(text: bytes) -> None:
    with pytest.raises(LabError, match=r"report of e2e\.test cannot be read"):
        suite.read(text, EVERYTHING)


def test_a_focus_without_a_test_is_an_error() -> None:
    with pytest.raises(LabError, match=r"no test of e2e\.test matches 'nothing'"):
        suite.read(report(spec("one", "passed")), re.compile("nothing"))


def program(folder: Path, text: str) -> Path:
    binary = folder / "e2e.test"
    binary.write_text(f"#!{sys.executable}\nimport sys\n{text}")
    binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
    return binary


def played(folder: Path, text: str) -> tuple[list[SpecResult], list[SpecResult]]:
    """What was announced, and the results."""
    announced: list[SpecResult] = []
    tests = Suite(program(folder, text), folder / "kubeconfig", folder / "output")
    return announced, asyncio.run(tests.run(announced.append))


WRITE = """
option = next(word for word in sys.argv if word.startswith("--ginkgo.json-report="))
open(option.partition("=")[2], "w").write(REPORT)
"""


def test_every_test_is_announced_when_it_ends(tmp_path: Path) -> None:
    content = report(spec("one", "passed")).decode()
    text = f"REPORT = {content!r}\nsys.stdout.buffer.write({PRINTED!r}.encode())" + WRITE
    announced, results = played(tmp_path, text)
    assert [(each.outcome, each.seconds) for each in announced] == [("passed", 4.25), ("skipped", 0.01), ("failed", 61)]
    assert announced[0].name == NAME
    assert [each.name for each in results] == ["[sig-scheduling] Group one"]


def test_a_line_of_megabytes_is_no_problem(tmp_path: Path) -> None:
    content = report(spec("one", "passed")).decode()
    text = f"REPORT = {content!r}\nprint('x' * (3 << 20))" + WRITE
    announced, results = played(tmp_path, text)
    assert (announced, len(results)) == ([], 1)
    assert (tmp_path / "output" / "e2e.log").stat().st_size == (3 << 20) + 1


def test_a_program_that_ends_without_a_report_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="ended with code 7 and no report: cannot reach the cluster"):
        played(tmp_path, "print('cannot reach the cluster')\nsys.exit(7)")


def test_the_report_of_an_earlier_run_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "output").mkdir()
    (tmp_path / "output" / "report.json").write_bytes(report(spec("old", "passed")))
    with pytest.raises(LabError, match="ended with code 1 and no report"):
        played(tmp_path, "sys.exit(1)")


def test_tests_that_are_cancelled_are_ended(tmp_path: Path) -> None:
    marks = f"""
import pathlib, signal, time
def leave(*_):
    pathlib.Path({str(tmp_path / "cleaned")!r}).touch()
    sys.exit(0)
signal.signal(signal.SIGTERM, leave)
print({NAME!r})
print("• [0.1 seconds]", flush=True)
time.sleep(600)
"""

    async def cancelled() -> None:
        begun = asyncio.Event()
        binary = program(tmp_path, marks)
        tests = Suite(binary, tmp_path / "kubeconfig", tmp_path / "output")
        running = asyncio.create_task(tests.run(lambda _: begun.set()))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(cancelled())
    assert (tmp_path / "cleaned").exists()
