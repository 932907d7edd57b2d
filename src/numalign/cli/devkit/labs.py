"""Starts the background process of a lab, and reads the options of `numalign lab up` as nodes.

The background process is `numalign lab up` again. The waiting command prints every line until the lab is up, and ends
the process if it is interrupted. Invalid options raise BadObject before anything starts."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from msgspec import Struct, structs

from numalign.agent.sources import sysfs
from numalign.api.decode import fields
from numalign.cli import fileio, inputs
from numalign.kube import clock
from numalign.lab import node, preflight, spec, state, up
from numalign.lab.errors import LabError
from numalign.lab.spec import NodeSpec
from numalign.process import interpreter, tasks

if TYPE_CHECKING:
    from numalign.lab.spec import LabSpec
    from numalign.lab.state import LabState


LOOK: Final = 0.05
LOG: Final = "log"
HOST: Final = "host"
"""In place of a machine's name: the machine that the lab runs on."""
UP: Final = "up"
"""The last line of a start."""


def require(wanted: LabSpec) -> None:
    """Raises LabError or BadObject before a process is started."""
    if problem := preflight.missing(len(wanted.nodes), wanted.reporter_count, containers=wanted.runs_containers):
        raise LabError(problem)
    spec.check(wanted)
    if state.INSTANCES.running(wanted.name) is not None:
        raise state.INSTANCES.already_runs(wanted.name)


def stay(wanted: LabSpec) -> None:
    """Runs the lab until a signal."""
    with suppress(asyncio.CancelledError), clock.event_loop_runner() as runner:
        runner.run(tasks.until_signalled(_hold(wanted)))


async def _hold(wanted: LabSpec) -> None:
    async with up.up(wanted, _say):
        _say(UP)
        await asyncio.Event().wait()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def started(name: str) -> LabState:
    """Runs the same command in a background process, and waits until the lab is up."""
    state.clear(name)
    place = state.INSTANCES.prepared(name)
    with open(place / LOG, "wb") as log_file:
        command = [*interpreter.NUMALIGN, *sys.argv[1:], "--foreground"]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log_file, stderr=log_file, start_new_session=True, cwd=Path.cwd()
        )
    try:
        return _awaited(name, process, place / LOG)
    except BaseException:
        process.terminate()
        raise


def _awaited(name: str, process: subprocess.Popen[bytes], log: Path) -> LabState:
    with open(log) as log_file:
        while process.poll() is None:
            if _print_new(log_file):
                found = state.INSTANCES.running(name)
                if found is not None:
                    return found
            time.sleep(LOOK)
        _print_new(log_file)
    raise LabError(f"the lab failed to start; `numalign lab logs --name {name}` lists the logs of its programs")


def _print_new(log_file: IO[str]) -> bool:
    """Prints the new lines; returns whether the last line of a start was among them."""
    for line in log_file:
        if line.strip() == UP:
            return True
        sys.stderr.write(line)
    return False


class NodeOptions(Struct, frozen=True):
    """The options that describe nodes."""

    nodes: int
    machine: str
    policy: str
    scope: str
    kubelet_config: Path | None
    devices: Path | None
    direct: bool = False


def nodes_of(asked: NodeOptions) -> tuple[NodeSpec, ...]:
    """Equal nodes with numbered names."""
    real = asked.machine == HOST
    machine = sysfs.survey(Path("/"), HOST).machine if real else inputs.machine(asked.machine)
    config = _mapping(asked.kubelet_config, "KubeletConfiguration") if asked.kubelet_config else None
    if asked.direct and config is None:
        config = dict(spec.UNMANAGED)
    # Options take precedence over the file.
    typed = {"topologyManagerPolicy": asked.policy, "topologyManagerScope": asked.scope}
    more = {key: value for key, value in typed.items() if value}
    one = spec.node("node", machine, kubelet=config, more=more, real=real, direct=asked.direct)
    return spec.repeated(_with_devices(one, asked.devices), asked.nodes)


def _with_devices(one: NodeSpec, path: Path | None) -> NodeSpec:
    if path is None:
        return one
    devices = _mapping(path, "Devices")
    return structs.replace(one, devices=devices, machine=node.known(one.machine, devices, str(path)))


def _mapping(path: Path, kind: str) -> dict[str, Any]:
    document = fileio.only(str(path))
    return fields.named(fields.root(document.value, kind, document.place))
