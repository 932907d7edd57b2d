"""One container on a simulated node: waiting, running, ended, started again.

`podlife` drives it and `podstatus` tells about it. Waiting before a restart follows the kubelet's crash loop back-off:
at once the first time, then ten seconds, doubling up to five minutes, forgotten after ten minutes of running."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from numalign.api.objects.pod import Container
from numalign.kube.backoff import Exponential
from numalign.kubelet.demand import Role
from numalign.simulator.nodes.workloads import Run

BACKOFF: Final = Exponential(first=10.0, longest=300.0)
FORGOTTEN_AFTER: Final = 600.0

KILLED: Final = 137
STOPPED: Final = 143
LOST: Final = 255
"""Exit codes: killed when its time was over, ended when told to, gone with the machine."""


class Ended(Struct, frozen=True):
    """How a container ended. `began` None: it never ran."""

    began: float | None
    finished: float
    exit_code: int
    reason: str
    message: str = ""


class ContainerRun:
    __slots__ = ("_crashes", "_run", "began", "container", "ended", "last", "retry", "role", "starts")

    def __init__(self, container: Container, role: Role) -> None:
        self.container = container
        self.role = role
        self.starts = 0
        self.began: float | None = None
        """When it was started; None while it does not run."""
        self.ended: Ended | None = None
        """How it ended, as long as it was not started again."""
        self.last: Ended | None = None
        """How it ended the time before."""
        self.retry = 0.0
        """When it may be started again."""
        self._run = Run()
        self._crashes = 0

    @property
    def name(self) -> str:
        return self.container.name

    @property
    def running(self) -> bool:
        return self.began is not None

    @property
    def due(self) -> float | None:
        """When it ends by itself."""
        if self.began is None or self._run.seconds is None:
            return None
        return self.began + self._run.seconds

    def start(self, now: float, run: Run) -> None:
        self.last, self.ended = self.ended or self.last, None
        self.began, self._run = now, run
        self.starts += 1

    def exit(self) -> None:
        """By itself, when it was due."""
        if self.due is not None:
            reason = "Completed" if self._run.exit_code == 0 else "Error"
            why = self._run.message
            self.finish(Ended(self.began, self.due, self._run.exit_code, "ContainerCannotRun" if why else reason, why))

    def finish(self, how: Ended) -> None:
        if how.began is not None and how.finished - how.began > FORGOTTEN_AFTER:
            self._crashes = 0
        self.retry = how.finished + BACKOFF.pause(self._crashes)
        self._crashes += 1
        self.ended, self.began = how, None

    def reset(self) -> None:
        """To be started once more, without waiting: its sandbox is a new one."""
        self.last, self.ended = self.ended or self.last, None

    def waits_for_retry(self, now: float) -> bool:
        return self.ended is not None and self.retry > now
