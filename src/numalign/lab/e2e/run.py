"""Runs Kubernetes' end-to-end tests of scheduling on a lab, with one scheduler after the other.

`numalign lab e2e` and tests call `run`. Every scheduler gets a lab of its own: nodes in two failure zones, all managers
of the kubelet on, and the numalign agent on every node, so that both schedulers meet the same cluster."""

import asyncio
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from msgspec import Struct, structs

from numalign.kubelet.machine import presets
from numalign.lab import build, spec, up
from numalign.lab.e2e import suite
from numalign.lab.e2e.report import SCHEDULERS, SchedulerName, SuiteRun
from numalign.lab.e2e.suite import SpecResult, Suite
from numalign.lab.lab import Lab, Say
from numalign.lab.spec import LabSpec, NodeSpec
from numalign.process import tasks

BINARY: Final = "e2e.test"
ZONE_LABEL: Final = "topology.kubernetes.io/zone"
NODES: Final = 3
FAILURE_ZONES: Final = ("zone-a", "zone-b")


class E2EOptions(Struct, frozen=True, kw_only=True):
    name: str = "e2e"
    schedulers: tuple[SchedulerName, ...] = SCHEDULERS
    focus: str = suite.FOCUS
    logs: Path | None = None
    """The folder for the output of the tests, one folder per scheduler; without it the output is removed."""


def nodes() -> tuple[NodeSpec, ...]:
    every = spec.repeated(spec.node("node", presets.machine("2x16")), NODES)
    zones = (FAILURE_ZONES[number % len(FAILURE_ZONES)] for number in range(NODES))
    return tuple(structs.replace(each, labels={ZONE_LABEL: zone}) for each, zone in zip(every, zones, strict=True))


def lab(asked: E2EOptions, scheduler: SchedulerName) -> LabSpec:
    ours = scheduler == "numalign"
    return LabSpec(
        name=asked.name,
        nodes=nodes(),
        agent=True,
        only_scheduler=ours,
        stock_scheduler=not ours,
        # One test has a local volume at /tmp, and no fsGroup.
        local_volumes=True,
    )


async def run(asked: E2EOptions, say: Say) -> tuple[SuiteRun, ...]:
    """LabError if a lab or the tests cannot run. A signal ends it: what has run is lost."""
    binary = _built(say)
    running = asyncio.ensure_future(_each(asked, binary, say))
    with tasks.ended_by_signals(asyncio.get_running_loop(), running):
        return await running


def _built(say: Say) -> Path:
    (found,) = build.build(
        build.chosen([BINARY]), lambda each: say(f"building {each.name}: about {each.minutes:.0f} min, once")
    )
    return found.path


async def _each(asked: E2EOptions, binary: Path, say: Say) -> tuple[SuiteRun, ...]:
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.logs or Path(scratch)
        return tuple([await _one(asked, each, binary, folder / each, say) for each in asked.schedulers])


async def _one(asked: E2EOptions, scheduler: SchedulerName, binary: Path, folder: Path, say: Say) -> SuiteRun:
    async with up.up(lab(asked, scheduler), say) as started:
        tests = Suite(binary, started.kubeconfig, folder.absolute(), asked.focus)
        results = await tests.run(lambda done: started.say(f"{scheduler}: {_words(done)}"))
        return SuiteRun(scheduler=scheduler, results=tuple(results), restarted=tuple(_restarted(started)))


def _words(done: SpecResult) -> str:
    return f"{done.outcome:<7} {done.name.removeprefix('[sig-scheduling] ')} ({done.seconds:.0f} s)"


def _restarted(started: Lab) -> Iterable[str]:
    """Programs that ended unexpectedly: the result of a test that ran meanwhile says little."""
    return (part.program.title for part in started.every_part() if part.starts > 1)
