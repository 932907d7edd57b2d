"""Machine code is made ready beside the scheduler's work: by another process, and loaded only when it is there."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import random
import sys
import threading
import time
from pathlib import Path

import pytest

from numalign.placement.engine import Engine
from numalign.scheduler import compile as warming
from numalign.simulator import virtualtime


class Noted:
    """Notes in which thread it was to load machine code."""

    def __init__(self, *, kernel: object | None = "plain Python") -> None:
        self.kernel = kernel
        self.threads: list[threading.Thread] = []

    def warm(self) -> bool:
        self.threads.append(threading.current_thread())
        return True


def command(code: str) -> tuple[str, ...]:
    return sys.executable, "-c", code


def test_what_another_process_compiled_is_loaded_in_a_thread(caplog: pytest.LogCaptureFixture) -> None:
    engine = Noted()
    with caplog.at_level(logging.INFO, warming.__name__):
        assert asyncio.run(warming.warmed(engine, command("print('noise'); print('loaded from /kernels')")))
    assert len(engine.threads) == 1
    assert engine.threads[0] is not threading.main_thread()
    assert [record.getMessage() for record in caplog.records] == ["the kernel is machine code: loaded from /kernels"]


@pytest.mark.parametrize(
    "code, why",
    [
        ("raise RuntimeError('cannot cache function: no locator available')", "no locator available"),
        ("raise SystemExit(3)", "exit code 3"),
    ],
    ids=["there is no place to write to", "it says nothing"],
)
def test_where_it_cannot_be_compiled_numpy_serves_and_one_line_says_why(
    code: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    engine = Noted()
    with caplog.at_level(logging.INFO, warming.__name__):
        assert not asyncio.run(warming.warmed(engine, command(code)))
    assert [why in record.getMessage() for record in caplog.records] == [True]
    assert engine.threads == []


def test_without_numba_no_process_is_started(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(warming, "find_spec", lambda _: None)
    with caplog.at_level(logging.INFO, warming.__name__):
        assert not asyncio.run(warming.warmed(Noted(), ("no such program",)))
    assert "numba is not installed" in caplog.text


def test_the_flavour_that_has_no_kernels_needs_none() -> None:
    assert not asyncio.run(warming.warmed(Noted(kernel=None), ("no such program",)))


def test_a_process_that_compiles_ends_with_the_scheduler(tmp_path: Path) -> None:
    pipe = tmp_path / "pid"
    os.mkfifo(pipe)
    endless = f"import os, signal; open({str(pipe)!r}, 'w').write(str(os.getpid())); signal.pause()"

    async def run() -> int:
        compiling = asyncio.ensure_future(warming.warmed(Noted(), command(endless)))
        pid = int(await asyncio.to_thread(pipe.read_text))
        compiling.cancel()
        await asyncio.wait([compiling])
        return pid

    with pytest.raises(ProcessLookupError):
        os.kill(asyncio.run(run()), 0)


def test_machine_code_that_cannot_be_loaded_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Noted):
        def warm(self) -> bool:
            raise RuntimeError("the cache was written for another machine")

    assert not asyncio.run(warming.warmed(Broken(), command("")))
    assert "written for another machine" in caplog.text


def test_a_small_cluster_waits_until_it_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, sizes = Noted(), iter([3, warming.MANY_NODES - 1, warming.MANY_NODES])

    async def run() -> float:
        clock = virtualtime.clock(random.Random(1))
        begun = clock.now()
        monkeypatch.setattr(warming, "warmed", lambda warmed: asyncio.sleep(0, warmed.warm()))
        assert await warming.when_large(engine, lambda: next(sizes), clock)
        return clock.now() - begun

    assert virtualtime.run(run()) == 2 * warming.PERIOD


@pytest.mark.slow
def test_with_a_cold_cache_no_task_waits_for_the_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lease is renewed every two seconds and lasts fifteen; compiling takes minutes on a busy machine."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    async def run() -> tuple[float, float]:
        turns, begun = [time.monotonic()], time.monotonic()
        warming_up = asyncio.ensure_future(warming.warmed(Engine()))
        while not warming_up.done():
            await asyncio.sleep(0.005)
            turns.append(time.monotonic())
        assert await warming_up
        return max(later - earlier for earlier, later in itertools.pairwise(turns)), turns[-1] - begun

    longest, taken = asyncio.run(run())
    assert longest < taken / 10


def test_machine_code_that_another_user_left_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What numba caches is loaded as code."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    if os.geteuid() == 0:
        os.chown(tmp_path, 1234, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 1234)
    engine = Noted()
    with caplog.at_level(logging.INFO, warming.__name__):
        assert not asyncio.run(warming.warmed(engine, command("")))
    assert ["belongs to another user" in record.getMessage() for record in caplog.records] == [True]
    assert engine.threads == []
