"""Runs e2e.test against a cluster and reads its report.

`run` calls `Suite.run` once per scheduler. Ginkgo, the framework of these tests, prints a line when a test begins and
one when it ends, from which progress is announced, and writes a report in JSON at the end, from which the results come.
"""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct

from numalign.lab.errors import LabError

FOCUS: Final = r"\[sig-scheduling\]"
OFF: Final = "Feature:OffByDefault"
"""The label of tests of features that a cluster does not have unless a feature gate is set."""
DEADLINE: Final = "3h"
REPORT: Final = "report.json"
LOG: Final = "e2e.log"
LINES_SHOWN: Final = 5
CLEANUP: Final = 30.0
"""Seconds that the tests have to end after a signal."""
AT_LEAST: Final = 1 << 20
"""Bytes of a line that are read at once; tests print objects in one line."""
ENDED: Final = re.compile(r"(?:•|S|P) (?:\[([A-Z ]+)\] )?\[([\d.]+) seconds\]$")
BEGAN: Final = re.compile(r"\[sig-\S+\] ")
LABELS: Final = re.compile(r" \[[^\]]*\]$")

Outcome = Literal["passed", "failed", "skipped", "not run"]
"""`skipped`: the test itself found that the cluster does not have what it needs. `not run`: it is not in the focus."""
BAD: Final = ("failed", "panicked", "timedout", "interrupted", "aborted")


class SpecResult(Struct, frozen=True, kw_only=True):
    """The result of one test."""

    name: str
    outcome: Outcome
    seconds: float = 0.0
    why: str = ""
    """The first lines of a failure, or why the test was skipped."""


class Failure(Struct, frozen=True, rename="pascal"):
    message: str = ""


class SpecReport(Struct, frozen=True, kw_only=True, rename="pascal"):
    """One test of Ginkgo's report. Times are in nanoseconds."""

    container_hierarchy_texts: list[str] | None = None
    container_hierarchy_labels: list[list[str] | None] | None = None
    leaf_node_type: str = ""
    leaf_node_text: str = ""
    leaf_node_labels: list[str] | None = None
    state: str = ""
    num_attempts: int = 0
    run_time: int = 0
    failure: Failure = Failure()

    @property
    def name(self) -> str:
        return " ".join((*(self.container_hierarchy_texts or ()), self.leaf_node_text))

    @property
    def labels(self) -> set[str]:
        outer = (label for labels in self.container_hierarchy_labels or () for label in labels or ())
        return {*outer, *(self.leaf_node_labels or ())}


class SuiteReport(Struct, frozen=True, kw_only=True, rename="pascal"):
    spec_reports: list[SpecReport] | None = None


def read(report: bytes, focus: re.Pattern[str]) -> list[SpecResult]:
    """The results of the tests whose names match, and of those that need another cluster, in order of their names."""
    try:
        suites = msgspec.json.decode(report, type=list[SuiteReport])
    except msgspec.DecodeError as problem:
        raise LabError(f"the report of e2e.test cannot be read: {problem}") from None
    specs = [spec for suite in suites for spec in suite.spec_reports or () if spec.leaf_node_type == "It"]
    found = [_result(spec) for spec in specs if focus.search(spec.name)]
    if not found:
        raise LabError(f"no test of e2e.test matches {focus.pattern!r}; `e2e.test --list-tests` lists them")
    return sorted(found, key=lambda each: each.name)


def _result(spec: SpecReport) -> SpecResult:
    if spec.num_attempts == 0:
        needs = sorted(label for label in spec.labels if label.startswith("FeatureGate:"))
        why = f"needs {', '.join(needs).replace('FeatureGate:', 'the feature gate ')}" if OFF in spec.labels else ""
        return SpecResult(name=spec.name, outcome="not run", why=why)
    outcome: Outcome = "failed" if spec.state in BAD else "skipped" if spec.state == "skipped" else "passed"
    lines = [line.strip() for line in spec.failure.message.splitlines() if line.strip()]
    return SpecResult(
        name=spec.name, outcome=outcome, seconds=round(spec.run_time / 1e9, 1), why="; ".join(lines[:LINES_SHOWN])
    )


class Suite:
    """The tests that match the focus, to be run against one cluster."""

    def __init__(self, binary: Path, kubeconfig: Path, folder: Path, focus: str = FOCUS) -> None:
        self._binary, self._kubeconfig, self._folder = binary, kubeconfig, folder
        self._focus = focus

    async def run(self, announce: Callable[[SpecResult], None]) -> list[SpecResult]:
        """LabError if the tests could not run. `announce` is called after every test."""
        self._folder.mkdir(parents=True, exist_ok=True)
        report = self._folder / REPORT
        # That of an earlier run must not pass for a new one.
        report.unlink(missing_ok=True)
        process = await asyncio.create_subprocess_exec(
            *self._command(),
            cwd=self._folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            limit=AT_LEAST,
        )
        assert process.stdout is not None
        try:
            await self._follow(process.stdout, announce)
            await process.wait()
        finally:
            await _ended(process)
        if not report.exists():
            raise LabError(f"e2e.test ended with code {process.returncode} and no report: {self._last_words()}")
        return read(report.read_bytes(), re.compile(self._focus))

    def _command(self) -> list[str]:
        return [
            str(self._binary),
            f"--kubeconfig={self._kubeconfig}",
            "--provider=skeleton",
            # Logs of nodes are in the lab's folder.
            "--disable-log-dump",
            f"--ginkgo.focus={self._focus}",
            f"--ginkgo.label-filter=!{OFF}",
            f"--ginkgo.timeout={DEADLINE}",
            # The order of the tests is the same in every run.
            "--ginkgo.seed=1",
            f"--ginkgo.json-report={self._folder / REPORT}",
            "--ginkgo.no-color",
            "--ginkgo.v",
        ]

    async def _follow(self, lines: asyncio.StreamReader, announce: Callable[[SpecResult], None]) -> None:
        name = ""
        with (self._folder / LOG).open("wb") as log:
            while line := await _line(lines):
                log.write(line)
                words = line.decode(errors="replace").strip()
                if BEGAN.match(words):
                    name = LABELS.sub("", words)
                elif (ended := ENDED.search(words)) and name:
                    announce(_announced(name, ended))
                    name = ""

    def _last_words(self) -> str:
        lines = (self._folder / LOG).read_text(errors="replace").splitlines()
        return "; ".join(line.strip() for line in lines[-LINES_SHOWN:] if line.strip())


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Ends the tests if they still run: they clean up after the first signal."""
    if process.returncode is not None:
        return
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), CLEANUP)
    except TimeoutError:
        process.kill()
        await process.wait()


def _announced(name: str, ended: re.Match[str]) -> SpecResult:
    said = ended[1] or ""
    outcome: Outcome = "skipped" if "SKIPPED" in said else "failed" if said else "passed"
    return SpecResult(name=name, outcome=outcome, seconds=float(ended[2]))


async def _line(lines: asyncio.StreamReader) -> bytes:
    """The next line, or a part of a very long one."""
    try:
        return await lines.readuntil(b"\n")
    except asyncio.IncompleteReadError as end:
        return end.partial
    except asyncio.LimitOverrunError as long:
        return await lines.readexactly(long.consumed)
