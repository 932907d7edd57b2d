"""Programs of a lab: where they run, how they end, what is known of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from numalign.lab import processes
from numalign.lab.errors import LabError
from numalign.lab.processes import Part, ProgramSpec

SLEEPS = ("/bin/sleep", "600")


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Callable[..., Part]]:
    every: list[Part] = []

    def make(*command: str) -> Part:
        every.append(Part(ProgramSpec(name="thing", command=command, log=tmp_path / "logs" / "thing.log")))
        return every[-1]

    yield make
    processes.end_all(every)


def ended(part: Part) -> Part:
    part.start()
    part.wait()
    return part


def test_a_program_runs_in_an_empty_folder_of_its_own(made: Callable[..., Part], tmp_path: Path) -> None:
    part = ended(made("/bin/sh", "-c", "pwd; ls -A"))
    assert part.program.log.read_text() == f"{tmp_path}/logs/thing.empty\n"


def test_a_program_that_ends_unasked_is_named_with_its_last_words(made: Callable[..., Part]) -> None:
    part = ended(made("/bin/sh", "-c", "echo no such flag; exit 3"))
    with pytest.raises(LabError, match="thing ended with 3: no such flag"):
        part.require()


def test_of_a_program_that_panics_the_reason_is_told_and_not_the_stack(made: Callable[..., Part]) -> None:
    part = ended(made("/bin/sh", "-c", "echo begins; echo panic: no such gate; echo; echo main.main; exit 2"))
    assert part.last_words() == "panic: no such gate"


def test_a_stopped_program_is_not_missed(made: Callable[..., Part]) -> None:
    part = made(*SLEEPS)
    part.start()
    part.stop()
    part.require()
    assert (part.runs, part.wanted, part.pid) == (False, False, None)


def test_a_restarted_program_is_another_process(made: Callable[..., Part]) -> None:
    part = made(*SLEEPS)
    part.start()
    before = part.pid
    part.restart()
    assert part.runs
    assert (part.pid != before, part.starts) == (True, 2)


def test_a_paused_program_can_be_ended(made: Callable[..., Part]) -> None:
    part = made(*SLEEPS)
    part.start()
    part.pause()
    part.stop(signal.SIGTERM)
    assert not part.runs


def test_a_program_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    story = (
        "import os, pathlib, signal; from numalign.lab.processes import Part, ProgramSpec;"
        f"part = Part(ProgramSpec(name='thing', command={SLEEPS!r}, log=pathlib.Path({str(tmp_path)!r}, 'log')));"
        "part.start(); print(part.pid, flush=True); signal.pause()"
    )
    with subprocess.Popen([sys.executable, "-c", story], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        began = processes.started_at(pid)
        parent.kill()
    until = time.monotonic() + 10
    while processes.started_at(pid) == began and time.monotonic() < until:
        os.sched_yield()
    assert began is not None
    assert processes.started_at(pid) != began
