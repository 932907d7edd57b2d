"""The end of a device plugin or kubelet breaks the agent's connection to it, and the agent asks the kubelet at once."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from numalign.agent.triggers.triggers import MOST_CONNECTIONS, ConnectionWatch, KubeletWatch
from numalign.process import rpc
from tests.unit.agent.triggers.test_triggers_kubeletwatch import GPU, NONE, Answer, Kubelet, Over
from tests.unit.kube.clocks import FastClock, HandClock

PATIENCE = 30.0
SERVING = """
import asyncio, sys
from pathlib import Path
from numalign.process import rpc

async def serve() -> None:
    server = rpc.Server(Path(sys.argv[1]), rpc.Service("test.Service", {}))
    await server.start()
    print("serving", flush=True)
    await asyncio.sleep(600)

asyncio.run(serve())
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="numalign-") as name:
        yield Path(name)


class Breaks:
    """Counts broken connections."""

    def __init__(self) -> None:
        self.count = 0
        self._came = asyncio.Event()

    async def __call__(self) -> None:
        self.count += 1
        self._came.set()

    async def next(self) -> None:
        await asyncio.wait_for(self._came.wait(), PATIENCE)
        self._came.clear()


def followed(folder: Path, story: Callable[[Breaks], Awaitable[None]]) -> int:
    """How many connections broke while the story went on."""

    async def both() -> int:
        breaks, watch = Breaks(), ConnectionWatch(folder / "podresources.sock", folder / "plugins")
        following = asyncio.ensure_future(watch.follow(breaks, FastClock()))
        try:
            await story(breaks)
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
        return breaks.count

    (folder / "plugins").mkdir()
    return asyncio.run(both())


async def served(path: Path) -> asyncio.subprocess.Process:
    """A process that serves the socket."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVING, str(path), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert await asyncio.wait_for(process.stdout.readline(), PATIENCE) == b"serving\n"
    return process


class ReadyChannel(rpc.Channel):
    """Sets the event when it is connected."""

    ready: asyncio.Event

    async def broken(self) -> bool:
        await self._channel.channel_ready()
        self.ready.set()
        return await super().broken()


@pytest.mark.parametrize("name", ["podresources.sock", "plugins/gpu.sock"])
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_the_end_of_a_program_is_noticed_however_it_ends(
    folder: Path, name: str, ending: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rpc, "Channel", ReadyChannel)

    async def story(breaks: Breaks) -> None:
        for _ in range(2):  # the second one serves a new socket
            ReadyChannel.ready = asyncio.Event()
            (folder / name).unlink(missing_ok=True)
            process = await served(folder / name)
            await asyncio.wait_for(ReadyChannel.ready.wait(), PATIENCE)
            process.send_signal(ending)
            await process.wait()
            await breaks.next()

    assert followed(folder, story) == 2


def test_what_is_no_socket_of_a_program_is_left_alone(folder: Path) -> None:
    async def story(breaks: Breaks) -> None:
        plugins = folder / "plugins"
        (plugins / "kubelet_internal_checkpoint").touch()
        (plugins / "link.sock").symlink_to(folder / "elsewhere.sock")
        (plugins / ("x" * 200)).touch()
        with socket.socket(socket.AF_UNIX) as unserved:
            unserved.bind(str(plugins / "old.sock"))
        await asyncio.sleep(0.1)

    assert followed(folder, story) == 0


def test_a_folder_full_of_sockets_takes_a_bounded_number_of_connections(folder: Path) -> None:
    opened = []

    class Counting(rpc.Channel):
        def __init__(self, path: Path) -> None:
            opened.append(path)
            super().__init__(path)

    async def story(breaks: Breaks) -> None:
        for number in range(2 * MOST_CONNECTIONS):
            with socket.socket(socket.AF_UNIX) as unserved:
                unserved.bind(str(folder / f"plugins/{number}.sock"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rpc, "Channel", Counting)
        followed(folder, story)
    assert len(opened) <= MOST_CONNECTIONS


CHECKS: dict[str, tuple[tuple[Answer, ...], int]] = {
    "the kubelet has noticed it": ((NONE,), 1),
    "the kubelet notices it a moment later": ((GPU, NONE), 1),
    "nothing is missing": ((GPU, GPU), 0),
}


@pytest.mark.parametrize("answers, looks", CHECKS.values(), ids=CHECKS)
def test_the_kubelet_is_asked_twice_in_a_moment(answers: tuple[Answer, ...], looks: int) -> None:
    async def story() -> int:
        watch, found, clock = KubeletWatch(Kubelet([GPU, *answers])), list[None](), HandClock()
        await watch.allocatable()
        await watch.check(lambda: found.append(None), clock)
        assert clock.now() < 0.5
        with pytest.raises(Over):
            await watch.allocatable()
        return len(found)

    assert asyncio.run(story()) == looks
