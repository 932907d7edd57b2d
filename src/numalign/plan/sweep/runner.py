"""Runs a sweep in several processes, and keeps every finished run in a file, so that a later call goes on from there.

`numalign plan sweep` calls `Journal` and `runs`; `daskcluster` calls `run` in processes elsewhere. The
journal has one line for each run; its first line says what the sweep is about. A run depends on the cluster, the point
and the seed alone. A process that dies costs the runs that it had not finished, which others then do."""

from __future__ import annotations

import fcntl
import hashlib
import multiprocessing
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import IO, Any, Final

import msgspec
from msgspec import Struct

from numalign.api.decode import decode
from numalign.api.errors import BadObject, clipped
from numalign.kube.resources import NODES
from numalign.plan.questions import whatif
from numalign.plan.questions.scene import Kind
from numalign.plan.questions.whatif import Figures, WhatIfQuestion
from numalign.plan.sweep import grid
from numalign.plan.sweep.grid import Point
from numalign.scheduler.snapshot import files
from numalign.scheduler.snapshot.snapshot import Snapshot

JOURNAL: Final = "runs.jsonl"
MOST_DEATHS: Final = 3
"""Pools that may break one after the other without a finished run."""

Clock = Callable[[], float]


class Task(Struct, frozen=True, kw_only=True):
    point: Point
    seed: int

    @property
    def key(self) -> str:
        return msgspec.json.encode([self.point, self.seed]).decode()


class FinishedRun(Struct, frozen=True, kw_only=True, rename="camel"):
    """One finished run."""

    point: Point
    seed: int
    figures: Figures | None = None
    problem: str = ""
    """Why there are no figures: no kubelet would start like that."""
    seconds: float = 0.0

    @property
    def key(self) -> str:
        return Task(point=self.point, seed=self.seed).key


class Subject(Struct, frozen=True, kw_only=True):
    """What all runs have in common."""

    taken: Snapshot
    kinds: tuple[Kind, ...] = ()
    from_empty: bool = False

    def digest(self) -> str:
        """Equal for equal clusters and workloads."""
        found = hashlib.sha256()
        # As a file would have it: reading one may fill in what an API server left out.
        for piece in files.pieces(files.read(_text(self.taken), JOURNAL, self.taken.config)):
            found.update(piece)
        found.update(repr((self.kinds, self.from_empty)).encode())
        return found.hexdigest()


def packed(taken: Snapshot) -> bytes:
    """The cluster as a file."""
    return files.packed(_text(taken))


def _text(taken: Snapshot) -> bytes:
    return b"".join(files.pieces(taken))


class _Head(Struct, frozen=True, kw_only=True):
    subject: str
    version: str


class Journal:
    """The finished runs of a sweep, as a file that is only added to."""

    def __init__(self, folder: Path, subject: str, version: str) -> None:
        """BadObject if the folder cannot be used, or has another sweep."""
        self.path = folder / JOURNAL
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file: IO[bytes] = self.path.open("a+b")
        except OSError as problem:
            raise BadObject("Folder", str(folder), "", f"cannot be written: {problem.strerror}") from None
        self.rows: dict[str, FinishedRun] = {}
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._read(folder, _Head(subject=subject, version=version))
        except BlockingIOError:
            self.close()
            raise BadObject("Folder", str(folder), "", "is in use by another sweep; wait for its end") from None
        except BaseException:
            self.close()
            raise

    def add(self, row: FinishedRun) -> None:
        self._write(msgspec.json.encode(row))
        self.rows[row.key] = row

    def close(self) -> None:
        self._file.close()

    def _read(self, folder: Path, head: _Head) -> None:
        self._file.seek(0)
        lines = self._file.read().split(b"\n")
        # The process may have been killed in the middle of a line.
        torn = lines.pop()
        if torn:
            self._file.truncate(self.path.stat().st_size - len(torn))
        if not lines:
            self._write(msgspec.json.encode(head))
            return
        try:
            before = msgspec.json.decode(lines[0], type=_Head)
            rows = [msgspec.json.decode(line, type=FinishedRun) for line in lines[1:]]
        except decode.UNREADABLE as problem:
            raise BadObject(
                "File", str(self.path), "", f"is no journal of a sweep: {decode.shortened(problem)}"
            ) from None
        if before != head:
            what = (
                "another cluster or workload"
                if before.version == head.version
                else f"numalign {clipped(before.version)}"
            )
            why = f"has runs of {what}; give --out another folder, or remove this one"
            raise BadObject("Folder", str(folder), "", why)
        self.rows = {row.key: row for row in rows}

    def _write(self, line: bytes) -> None:
        self._file.write(line + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def runs(subject: Subject, tasks: Sequence[Task], workers: int, clock: Clock) -> Iterator[FinishedRun]:
    """Each run as it ends; in the order of the tasks if there is one worker."""
    if min(workers, len(tasks)) < 2:
        for task in tasks:
            yield run(subject, names(subject.taken), task, clock)
        return
    yield from _in_processes(subject, tasks, workers, clock)


def _in_processes(subject: Subject, tasks: Sequence[Task], workers: int, clock: Clock) -> Iterator[FinishedRun]:
    left, deaths = {task.key: task for task in tasks}, 0
    while left:
        # Forked children would inherit locks of threads that do not exist in them.
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(min(workers, len(left)), context, _begin, (subject, clock))
        try:
            waiting = {pool.submit(_run, task) for task in left.values()}
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for each in done:
                    row = each.result()
                    left.pop(row.key)
                    deaths = 0
                    yield row
        except BrokenProcessPool:
            deaths += 1
            if deaths > MOST_DEATHS:
                why = "its processes die; memory may be short: give --workers 1. Finished runs are kept"
                raise BadObject("plan sweep", "", "--workers", why) from None
        finally:
            pool.shutdown(cancel_futures=True)


_SUBJECT: dict[str, Any] = {}
"""Of a process that makes runs."""


def _begin(subject: Subject, clock: Clock) -> None:
    """What all runs of this process are about; it is sent once."""
    _SUBJECT.update(subject=subject, clock=clock, names=names(subject.taken))


def _run(task: Task) -> FinishedRun:
    return run(_SUBJECT["subject"], _SUBJECT["names"], task, _SUBJECT["clock"])


def names(taken: Snapshot) -> list[str]:
    """Of all nodes."""
    return [node.metadata.name for node in taken.every(NODES)]


def run(subject: Subject, there: Collection[str], task: Task, clock: Clock) -> FinishedRun:
    begun = clock()
    try:
        change = grid.change(task.point, there, task.seed, from_empty=subject.from_empty)
        figures = whatif.one(subject.taken, WhatIfQuestion(change=change, kinds=subject.kinds, seed=task.seed))
    except BadObject as problem:
        return FinishedRun(point=task.point, seed=task.seed, problem=str(problem), seconds=round(clock() - begun, 3))
    return FinishedRun(point=task.point, seed=task.seed, figures=figures, seconds=round(clock() - begun, 3))


def flat(figures: Figures) -> dict[str, float]:
    """Every number with its name; those of a device or a kind of pod have its name behind theirs."""
    found: dict[str, float] = {}
    for field, value in msgspec.to_builtins(figures).items():
        if isinstance(value, Mapping):
            found |= {f"{field}:{name}": number for name, number in value.items()}
        else:
            found[field] = value
    return found


def lines(rows: Sequence[FinishedRun]) -> list[dict[str, object]]:
    """The rows as a table, without what differs from call to call."""
    return [
        {
            **row.point,
            "seed": row.seed,
            **(flat(row.figures) if row.figures is not None else {}),
            "problem": row.problem,
        }
        for row in rows
    ]
