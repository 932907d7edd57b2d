"""Makes the runs of a sweep on the workers of a Dask cluster, with the package distributed, which is an extra.

`numalign plan sweep --dask` calls `runs`. Each worker is given the cluster and the workload once, also one that comes
later. Dask gives the runs of a worker that dies to others. A run is the same wherever it is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, Final

from numalign import __version__
from numalign.api.errors import BadObject
from numalign.plan.sweep import runner
from numalign.plan.sweep.runner import Clock, FinishedRun, Subject, Task

PACKAGE: Final = "distributed"
NAME: Final = "numalign-sweep"
PATIENCE: Final = 30.0
"""Seconds for the cluster to answer."""


class WorkerSetup:
    """Dask calls `setup` in every worker before its first run."""

    name = NAME

    def __init__(self, subject: Subject, clock: Clock, version: str) -> None:
        self._subject, self._clock, self._version = subject, clock, version

    def setup(self, worker: Any) -> None:
        if self._version != __version__:
            raise RuntimeError(f"has numalign {__version__}, and not {self._version} as the sweep")
        runner.begin(self._subject, self._clock)


def runs(subject: Subject, tasks: Sequence[Task], address: str, clock: Clock) -> Iterator[FinishedRun]:
    """Each run as it ends. BadObject if the package, the cluster or its workers fail."""
    try:
        dask: Any = import_module(PACKAGE)
    except ImportError:
        why = f"needs the package {PACKAGE}; pip install 'numalign[dask]', here and for the workers"
        raise BadObject("plan sweep", address, "--dask", why) from None
    try:
        client = dask.Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as problem:
        why = f"no Dask scheduler answers there: {problem}; write an address like tcp://host:8786"
        raise BadObject("plan sweep", address, "--dask", why) from None
    with client:
        try:
            client.register_plugin(_plugin(dask, WorkerSetup(subject, clock, __version__)))
            client.wait_for_workers(1, timeout=PATIENCE)
            # Not pure: a run that was made for another sweep must not be taken for this one.
            waiting = client.map(runner.made, tasks, pure=False)
            for each in dask.as_completed(waiting, loop=client.loop):
                yield each.result()
                each.release()
        except dask.KilledWorker as problem:
            why = f"its workers die; memory may be short: {problem}. Finished runs are kept"
            raise BadObject("plan sweep", address, "--dask", why) from None
        except (OSError, RuntimeError, TimeoutError, dask.client.FutureCancelledError) as problem:
            why = f"the Dask cluster fails: {problem or type(problem).__name__}. Finished runs are kept"
            raise BadObject("plan sweep", address, "--dask", why) from None


def _plugin(dask: Any, setup: WorkerSetup) -> Any:
    """Of Dask's own kind, which is only known once the package is there."""
    made = dask.WorkerPlugin()
    made.name, made.setup = setup.name, setup.setup
    return made
