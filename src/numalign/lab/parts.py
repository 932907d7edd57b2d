"""The programs of a lab, one `Part` each: started, watched, paused, ended by process id, started again.

`up` keeps them running, tests take them away. A part's end is tied to that of the thread which started it
(`launching`), so that whoever runs a lab starts its parts on the thread that lives longest. What a program says goes
into its log, one run after the other."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from signal import Signals
from typing import Final

from msgspec import Struct, field

from numalign.lab import launching
from numalign.lab.errors import LabError

PATIENCE: Final = 10.0
"""Seconds that a program gets to end by itself."""
LINES_SHOWN, SHOWN = 3, 1000
"""Of a log, that a message ends with; the second one counts characters."""
PANICS: Final = ("panic: ", "fatal error: ")
"""How a Go program begins when it says why it ends at once; where it was in its code follows, in many lines."""


class Program(Struct, frozen=True, kw_only=True):
    """What to run, and how it sees the world."""

    name: str
    command: tuple[str, ...]
    log: Path
    node: str = ""
    """The node it belongs to; none for the control plane."""
    mounts: tuple[tuple[str, str], ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    port: int = 0
    """Where it serves its pages without TLS, on loopback; 0: nowhere."""

    @property
    def title(self) -> str:
        return f"{self.node}/{self.name}" if self.node else self.name

    @property
    def workplace(self) -> Path:
        """An empty folder of its own to run in. The fake runtime tells no log path, and a kubelet that removes a
        container removes every file whose path begins with that: everything in its working folder."""
        return self.log.parent / f"{self.name}.empty"


class Part:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.wanted = False
        """Whether it is to be started again when it ends."""
        self.starts = 0
        self.started = 0.0
        """When it was, last, by the monotonic clock."""
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self.runs else None

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        if self.runs:
            return
        self.wanted = True
        self.starts += 1
        self.started = time.monotonic()
        program = self.program
        program.workplace.mkdir(parents=True, exist_ok=True)
        command = launching.command(program.command, program.mounts, parent=os.getpid())
        with open(program.log, "ab") as log:
            # A group of its own: an interrupted terminal ends the lab in order, and not all of it at once.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=program.workplace,
                env={**os.environ, **program.environment},
                start_new_session=True,
            )

    def stop(self, how: Signals = signal.SIGTERM) -> None:
        """Ends it, and it stays so until `start`."""
        self.wanted = False
        self._end(how)

    def restart(self, how: Signals = signal.SIGTERM) -> None:
        self._end(how)
        self.start()

    def pause(self) -> None:
        """It is there and does not answer, like a program on a machine that hangs."""
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.signal(signal.SIGCONT)

    def signal(self, what: Signals) -> None:
        if self._process is not None and self.runs:
            self._process.send_signal(what)

    def require(self) -> None:
        """LabError with its last words, if it has ended without being asked."""
        if self.wanted and not self.runs:
            code = self._process.returncode if self._process is not None else None
            raise LabError(f"{self.program.title} ended with {code}: {self.last_words()}")

    def last_words(self) -> str:
        with contextlib.suppress(OSError):
            lines = self.program.log.read_text(errors="replace").strip().splitlines()
            panics = [line for line in lines if line.startswith(PANICS)]
            return "; ".join(panics[-1:] or lines[-LINES_SHOWN:])[-SHOWN:]
        return ""

    def _end(self, how: Signals) -> None:
        self.signal(how)
        self.resume()
        self.wait()

    def wait(self, patience: float = PATIENCE) -> None:
        """Until it has ended; whoever does not in time is killed."""
        if self._process is None:
            return
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def end_all(parts: Iterable[Part]) -> None:
    """At once, since nothing of theirs is kept."""
    ending = list(parts)
    for part in ending:
        part.wanted = False
        part.signal(signal.SIGKILL)
    for part in ending:
        part.wait()


def started_at(pid: int) -> int | None:
    """When the process began, in the kernel's own ticks: with its id, that names it for good. None: no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name before it may hold anything, also parentheses.
    return int(stat.rpartition(")")[2].split()[19])
