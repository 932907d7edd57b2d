"""`numalign device-plugin`: offers made-up devices to a real kubelet.

The work is done by `agent.deviceplugin.server`, which the command imports when it runs, so that help stays fast."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from numalign.cli import output
from numalign.cli.options import LogFormat, Verbosity

if TYPE_CHECKING:
    from numalign.agent.deviceplugin.config import Offers

app = typer.Typer(no_args_is_help=True)

Config = Annotated[
    str, typer.Option("--config", metavar="FILE", help="The file with the devices; reloaded when it changes.")
]
OfMachine = Annotated[str, typer.Option("--machine", metavar="NAME|FILE", help="Offer this machine's devices instead.")]
Root = Annotated[Path, typer.Option("--kubelet-dir", metavar="DIR", help="The kubelet's root folder.")]


@app.callback()
def device_plugin() -> None:
    """Offer made-up devices with zones to a kubelet, for tests and labs."""


@app.command("run", epilog="Example: numalign device-plugin run --config examples/devices/nics.yaml")
def run(
    config: Config = "",
    machine: OfMachine = "",
    kubelet_dir: Root = Path("/var/lib/kubelet"),
    verbosity: Verbosity = 2,
    log_format: LogFormat = output.LogForm.TEXT,
) -> None:
    """Register with the kubelet and serve, through its restarts, until a signal ends it.

    A changed file counts within a second, SIGHUP at once. Exit code: 0 after a signal, 2 if it cannot start."""
    from numalign.agent.deviceplugin import server
    from numalign.process import log

    log.start("json" if log_format is output.LogForm.JSON else "text", verbosity)
    if bool(config) == bool(machine):
        output.fail("name what to offer: either --config or --machine")
    reader = _of_file(config) if config else _of_machine(machine)
    folder = kubelet_dir.absolute() / server.FOLDER
    if not folder.is_dir():
        output.fail(f"{folder} is not a folder; is {kubelet_dir} the root folder of a kubelet that has run?")
    asyncio.run(_serve(folder, reader, Path(config) if config else None))


async def _serve(folder: Path, reader: Callable[[], Offers], file: Path | None) -> None:
    from numalign.agent.deviceplugin.server import Plugins
    from numalign.process import tasks

    plugins = Plugins(folder, reader, file)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, plugins.again.set)
    await tasks.until_signalled(plugins.run())


def _of_file(path: str) -> Callable[[], Offers]:
    from numalign.agent.deviceplugin import config
    from numalign.cli import fileio

    def read() -> Offers:
        document = fileio.only(path)
        return config.read(document.value, document.place)

    return read


def _of_machine(name: str) -> Callable[[], Offers]:
    from numalign.agent.deviceplugin import config
    from numalign.cli import inputs

    return lambda: config.of_machine(inputs.machine(name).devices)
