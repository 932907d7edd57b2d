"""`numalign device-plugin run` from the outside: what keeps it from starting, and a whole life as a process."""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from numalign.cli.main import app
from tests.unit.agent.device_kubelet import DeviceManager

NIC = "example.com/nic"


@pytest.fixture
def root() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="numalign-") as name:
        Path(name, "device-plugins").mkdir()
        Path(name, "nics.yaml").write_text("devices: {example.com/nic: {0: 1}}")
        Path(name, "bad.yaml").write_text("devices: {nic: {0: 1}}")
        yield Path(name)


REFUSED = {
    "nothing to offer": ([], "either --config or --machine"),
    "two offers": (["--config", "nics.yaml", "--machine", "gpu-8"], "either --config or --machine"),
    "a file that is wrong": (["--config", "bad.yaml"], "devices[nic]: not a name that a device plugin can register"),
    "a file that is not there": (["--config", "none.yaml"], "none.yaml: cannot be read"),
    "a machine that is not known": (["--machine", "gpu-80"], "no such preset"),
    "another folder": (["--machine", "gpu-8", "--kubelet-dir", "elsewhere"], "is not a folder"),
}


@pytest.mark.parametrize("words, why", REFUSED.values(), ids=REFUSED)
def test_what_keeps_it_from_starting(root: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], why: str) -> None:
    monkeypatch.chdir(root)
    result = CliRunner().invoke(app, ["device-plugin", "run", "--kubelet-dir", ".", *words])
    assert result.exit_code == 2
    assert why in " ".join(result.stderr.split())


def test_it_serves_until_a_signal_and_reloads_on_sighup(root: Path) -> None:
    file = root / "nics.yaml"
    words = ["-m", "numalign.cli", "device-plugin", "run", "--config", str(file), "--kubelet-dir", str(root)]

    async def life() -> int:
        async with DeviceManager(root / "device-plugins").running() as manager:
            process = await asyncio.create_subprocess_exec(sys.executable, *words, stderr=asyncio.subprocess.DEVNULL)
            await manager.until(lambda: len(manager.devices.get(NIC, ())) == 1)
            file.write_text("devices: {example.com/nic: {0: 3}}")
            process.send_signal(signal.SIGHUP)
            await manager.until(lambda: len(manager.devices.get(NIC, ())) == 3)
            process.terminate()
            return await process.wait()

    assert asyncio.run(life()) == 0
    assert list(root.glob("device-plugins/*.sock")) == []
