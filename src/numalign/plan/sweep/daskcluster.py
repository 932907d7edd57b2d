"""Runs a sweep on the workers of a Dask cluster, on as many machines as there are.

`numalign plan sweep --dask ADDRESS` calls `runs`. Every worker keeps the cluster that the sweep is about, also one that
joins later. Runs that a worker had not finished when it died are made by others. Dask is imported here only, and only
when it is asked for: it belongs to the extra `dask`."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import CancelledError
from typing import Any, Final

from msgspec import Struct

from numalign import __version__
from numalign.api.errors import BadObject
from numalign.plan.sweep import runner
from numalign.plan.sweep.runner import Clock, FinishedRun, Subject, Task

AHEAD: Final = 4
"""Runs that wait at the scheduler for each thread of a worker: enough to keep it busy."""
AT_LEAST: Final = 16
PATIENCE: Final = 60.0
"""Seconds without any worker, at the start and later."""
LOOK: Final = 2.0


class Stranger(Exception):
    """A worker that has another numalign."""


def runs(
    address: str, subject: Subject, tasks: Sequence[Task], clock: Clock, waited: Callable[[], float], patience: float
) -> Iterator[FinishedRun]:
    """Each run as it ends. BadObject if the cluster cannot be used or ends; finished runs have been returned by then.

    `waited`: a clock in seconds, for `patience` with a cluster without workers."""
    distributed = _distributed()
    try:
        client = distributed.Client(address, timeout=patience)
    except (OSError, ValueError, TypeError) as problem:
        raise _bad(address, f"no Dask scheduler answers ({problem}); start one with `dask scheduler`") from None
    with client:
        yield from _Sweep(distributed, client, address, subject, clock).rows(tasks, waited, patience)


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise BadObject("plan sweep", "", "--dask", "needs Dask: pip install 'numalign[dask]'") from None
    return distributed


def _bad(address: str, why: str) -> BadObject:
    return BadObject("Dask cluster", address, "--dask", why)


class _Sweep:
    def __init__(self, distributed: Any, client: Any, address: str, subject: Subject, clock: Clock) -> None:
        self._distributed, self._client, self._address = distributed, client, address
        self._about = _About(subject.digest(), __version__)
        self._plugin = _plugin(distributed, self._about, subject, clock)

    def rows(self, tasks: Sequence[Task], waited: Callable[[], float], patience: float) -> Iterator[FinishedRun]:
        self._client.register_plugin(self._plugin, name=self._about.key)
        try:
            yield from self._rows(deque(tasks), waited, patience)
        except self._distributed.KilledWorker:
            why = "its workers die; memory may be short: start fewer on each machine. Finished runs are kept"
            raise _bad(self._address, why) from None
        except Stranger as problem:
            raise _bad(self._address, f"{problem}; install the same version everywhere") from None
        except (OSError, asyncio.CancelledError, CancelledError):
            raise _bad(self._address, "the scheduler ended. Finished runs are kept") from None
        except ModuleNotFoundError as problem:
            raise _bad(self._address, f"a worker lacks {problem.name}; install numalign there, too") from None
        finally:
            self._forget()

    def _rows(self, left: deque[Task], waited: Callable[[], float], patience: float) -> Iterator[FinishedRun]:
        running: set[Any] = set()
        alone_since: float | None = None
        while left or running:
            threads = sum(self._client.nthreads().values())
            if threads:
                alone_since = None
            elif alone_since is None:
                alone_since = waited()
            elif waited() - alone_since > patience:
                why = f"no worker for {patience:.0f} s; start some with `dask worker {self._address}`"
                raise _bad(self._address, f"{why}. Finished runs are kept")
            while left and len(running) < max(AT_LEAST, AHEAD * threads):
                task = left.popleft()
                running.add(self._client.submit(_run, self._about, task, key=f"{self._about.key}-{task.key}"))
            done = self._ended(running)
            running -= done
            for each in done:
                row: FinishedRun = each.result()
                yield row

    def _ended(self, running: Collection[Any]) -> set[Any]:
        """Those that have ended, as soon as one has; none if that takes longer."""
        try:
            found = self._distributed.wait(list(running), timeout=LOOK, return_when="FIRST_COMPLETED")
        except (TimeoutError, self._distributed.TimeoutError):
            return set()
        if self._client.status != "running" or any(each.status == "cancelled" for each in found.done):
            raise _bad(self._address, "the scheduler ended. Finished runs are kept")
        # The result of a lost one was on a worker that died: another makes the run again.
        return {each for each in found.done if each.status != "lost"}

    def _forget(self) -> None:
        """The workers may serve others, too."""
        if self._client.status == "running":
            self._client.unregister_worker_plugin(self._about.key)


class _About(Struct, frozen=True):
    """Which sweep a run belongs to."""

    subject: str
    version: str

    @property
    def key(self) -> str:
        return f"numalign-{self.subject}"


class _Kept(Struct, frozen=True):
    """What a worker keeps of a sweep."""

    subject: Subject
    nodes: list[str]
    clock: Clock


_KEPT: dict[str, _Kept] = {}
"""By sweep, of a process that is a worker."""
_ONE: Final = threading.Lock()
"""A worker may have several threads. One run at a time is as fast, because Python computes on one of them."""


def _plugin(distributed: Any, about: _About, subject: Subject, clock: Clock) -> Any:
    """Dask runs `setup` on every worker, those included that join later or are started again."""

    class Keeper(distributed.WorkerPlugin):  # type: ignore[misc]
        def setup(self, worker: Any) -> None:
            keep(about, subject, clock)

        def teardown(self, worker: Any) -> None:
            drop(about)

    return Keeper()


def keep(about: _About, subject: Subject, clock: Clock) -> None:
    _KEPT[about.key] = _Kept(subject, runner.names(subject.taken), clock)


def drop(about: _About) -> None:
    _KEPT.pop(about.key, None)


def _run(about: _About, task: Task) -> FinishedRun:
    if about.version != __version__:
        raise Stranger(f"a worker has numalign {__version__}, and this is {about.version}")
    with _ONE:
        kept = _KEPT[about.key]
        return runner.run(kept.subject, kept.nodes, task, kept.clock)
