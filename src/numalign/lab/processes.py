"""Runs the programs of a lab, one `Part` each: start, watch, pause, stop by process id, restart.

`up` keeps them running; campaigns and tests stop them. A part ends with the thread that started it (`launching`), so
the longest-lived thread must start it. A program's output is appended to its log."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from signal import Signals
from typing import Final

from msgspec import Struct, field

from numalign.lab import launching
from numalign.lab.errors import LabError

PATIENCE: Final = 10.0
"""Seconds that a program has to end by itself."""
SETTLING: Final = 0.01
LINES_SHOWN, SHOWN = 3, 1000
"""Lines, and characters, of a log at the end of an error message."""
PANICS: Final = ("panic: ", "fatal error: ")
"""The first line of a Go panic; a long stack trace follows."""


class ProgramSpec(Struct, frozen=True, kw_only=True):
    """A program to run, and its environment."""

    name: str
    command: tuple[str, ...]
    log: Path
    node: str = ""
    """The node it belongs to; empty for the control plane."""
    mounts: tuple[tuple[str, str], ...] = ()
    writable: tuple[str, ...] | None = None
    """The folders where it may write; None means everywhere."""
    environment: Mapping[str, str] = field(default_factory=dict)
    network: str = ""
    """The path of its network namespace; empty: the real machine's."""
    cgroups: tuple[str, ...] = ()
    """The folders of its cgroups; empty: those of this process."""
    view: Mapping[str, object] | None = None
    """For the first process of a node with real containers: what `launching` makes for the node's programs."""
    port: int = 0
    """The port of its HTTP pages on loopback; 0 if it has none."""

    @property
    def title(self) -> str:
        return f"{self.node}/{self.name}" if self.node else self.name

    @property
    def workplace(self) -> Path:
        """An empty working folder. The fake runtime reports no log path, and a kubelet that removes a container deletes
        every file whose path begins with that: everything in its working folder."""
        return self.log.parent / f"{self.name}.empty"


class Part:
    def __init__(self, program: ProgramSpec, home: Part | None = None) -> None:
        """`home` is the first process of the node whose namespaces the program enters."""
        self.program, self.home = program, home
        self.wanted = False
        """Whether it is restarted when it ends."""
        self.starts = 0
        self.started = 0.0
        """The last start, by the monotonic clock."""
        self._process: subprocess.Popen[bytes] | None = None
        self._guests: list[Part] = []
        """Programs in the namespaces of this one, which the kernel ends with it."""
        if home is not None:
            home._guests.append(self)

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
        command = launching.command(
            program.command,
            program.mounts,
            parent=os.getpid(),
            writable=program.writable,
            network=program.network,
            view=program.view,
            home=(self.home.until_settled() if self.home is not None else 0),
            cgroups=program.cgroups,
        )
        with open(program.log, "ab") as log, self._process_namespace():
            # Its own process group, so that an interrupt in the terminal does not end all parts at once.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=program.workplace,
                env={**os.environ, **program.environment},
                start_new_session=True,
            )

    def _process_namespace(self) -> AbstractContextManager[None]:
        if self.program.view is not None:
            return launching.first_process()
        return launching.processes_of(self.home.pid or 0) if self.home is not None else contextlib.nullcontext()

    @property
    def settled(self) -> bool:
        """Whether its program runs: `launching` has then made the namespaces of the node."""
        try:
            return os.readlink(f"/proc/{self.pid}/exe") == os.path.realpath(self.program.command[0])
        except OSError:
            return False  # it has ended

    def until_settled(self) -> int:
        """The process id, once it is settled."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            self.require()
            if self.settled:
                return self.pid or 0
            time.sleep(SETTLING)
        raise LabError(f"{self.program.title} does not start: {self.last_words()}")

    def stop(self, how: Signals = signal.SIGTERM) -> None:
        """Stop it until `start` is called."""
        self.wanted = False
        self._end(how)

    def restart(self, how: Signals = signal.SIGTERM) -> None:
        self._end(how)
        self.start()

    def pause(self) -> None:
        """Suspend it: it exists and does not answer, as on a hanging machine."""
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.signal(signal.SIGCONT)

    def signal(self, what: Signals) -> None:
        if self._process is not None and self.runs:
            self._process.send_signal(what)

    def require(self) -> None:
        """LabError with the end of its log, if it ended unexpectedly."""
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
        """Wait for its end; kill it after that time."""
        if self._process is None:
            return
        try:
            self._collect(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._collect(None)

    def _collect(self, patience: float | None) -> None:
        """The first process of a namespace does not end before all others in it are collected."""
        for part in (*self._guests, self):
            if part._process is not None:
                part._process.wait(patience)


def end_all(parts: Iterable[Part]) -> None:
    """Kill all at once: nothing of them is kept."""
    ending = list(parts)
    for part in ending:
        part.wanted = False
        part.signal(signal.SIGKILL)
    for part in ending:
        part.wait()


def started_at(pid: int) -> int | None:
    """The start time of the process in kernel ticks, which with the pid identifies it; None if there is no such
    process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name before it may contain parentheses.
    return int(stat.rpartition(")")[2].split()[19])
