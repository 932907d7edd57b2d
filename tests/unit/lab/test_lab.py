"""A lab that runs: what has ended is started again, and who looks at it is told of the processes that it has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from numalign.lab import lab as labs
from numalign.lab import processes, state
from numalign.lab.lab import Lab
from numalign.lab.processes import Part, ProgramSpec
from numalign.lab.spec import LabSpec
from numalign.lab.state import ProgramState


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.setenv(state.INSTANCES.variable, str(tmp_path))
    place = tmp_path / "a"
    made = Lab(LabSpec(name="a", nodes=()), place, lambda _: None)
    thing = ProgramSpec(name="thing", command=("/bin/sleep", "600"), log=place / "logs" / "thing.log")
    made.parts["thing"] = Part(thing)
    made.parts["thing"].start()
    made.tend()
    yield made
    processes.end_all(made.every_part())


def told() -> ProgramState:
    found = state.INSTANCES.last_announced("a")
    assert found is not None
    return found.pieces[0]


def test_a_program_that_was_stopped_and_started_is_told_with_its_new_process(lab: Lab) -> None:
    before, thing = told(), lab.parts["thing"]
    thing.stop()
    lab.tend()
    assert not told().runs
    thing.start()
    lab.tend()
    assert told().runs
    assert (told().pid, told().starts) == (thing.pid, before.starts + 1)


def test_a_program_that_ended_by_itself_is_started_again_and_told(lab: Lab) -> None:
    thing = lab.parts["thing"]
    processes.end_all([thing])
    thing.wanted, thing.started = True, thing.started - labs.REST
    lab.tend()
    assert thing.runs
    assert told().pid == thing.pid


def test_a_program_waits_for_the_namespaces_of_its_node(lab: Lab) -> None:
    """Its node's first process has ended, too, and is started first."""
    thing = lab.parts["thing"]
    guest = Part(ProgramSpec(name="guest", command=("/bin/sleep", "600"), log=thing.program.log), home=thing)
    lab.parts["guest"] = guest
    processes.end_all([thing])
    guest.wanted, guest.started = True, guest.started - labs.REST
    lab.tend()
    assert not guest.runs
    assert guest.starts == 0


def test_nothing_is_written_while_nothing_changes(lab: Lab) -> None:
    written = lab.place / state.INSTANCES.file
    before = written.stat().st_mtime_ns, written.stat().st_ino
    lab.tend()
    assert (written.stat().st_mtime_ns, written.stat().st_ino) == before
