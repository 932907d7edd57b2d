"""Runs an oracle program: cases in, the real component's answers out, one JSON line each.

A program is a child process that answers in order. A thread writes cases while answers are read, so that a full pipe
blocks neither side."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

Case = dict[str, Any]


class ProgramError(Exception):
    """The oracle program ended, or printed something that is not an answer."""


class Program:
    """A running oracle program. Use as a context manager."""

    def __init__(self, path: Path, arguments: Sequence[str] = ()) -> None:
        self.path = path
        self.process = subprocess.Popen(
            [path, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.complaints: list[bytes] = []
        self.listener = threading.Thread(target=self._listen, daemon=True)
        self.listener.start()

    def __enter__(self) -> Program:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the program."""
        self.process.terminate()
        self.process.wait(timeout=10)
        self.listener.join(timeout=10)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()

    def ask(self, cases: Sequence[tuple[str, Case]]) -> list[Case]:
        """The answers to these cases, in order."""
        writer = threading.Thread(target=self._write, args=(cases,), daemon=True)
        writer.start()
        answers = [self._answer() for _ in cases]
        writer.join()
        return answers

    def _write(self, cases: Iterable[tuple[str, Case]]) -> None:
        stdin = self.process.stdin
        assert stdin is not None, "the process was started with a pipe"
        try:
            for family, case in cases:
                stdin.write(msgspec.json.encode({"family": family, **case}) + b"\n")
            stdin.flush()
        except (BrokenPipeError, ValueError):
            return  # the reader reports that the program has ended, and why

    def _answer(self) -> Case:
        assert self.process.stdout is not None, "the process was started with a pipe"
        line = self.process.stdout.readline()
        if not line:
            self.listener.join(timeout=5)  # its last output may still be in the pipe
            said = b"".join(self.complaints[-20:]).decode(errors="replace").strip()
            raise ProgramError(f"{self.path.name} ended: {said or 'without a word'}")
        answer = msgspec.json.decode(line)
        if not isinstance(answer, dict):
            raise ProgramError(f"{self.path.name} answered {line[:80]!r}, which is not a case")
        return answer

    def _listen(self) -> None:
        assert self.process.stderr is not None, "the process was started with a pipe"
        for line in self.process.stderr:
            self.complaints.append(line)
            del self.complaints[:-200]
