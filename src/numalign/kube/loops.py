"""The event loop to run on: uvloop where it is installed, else asyncio's own.

Whoever starts a process or a benchmark enters `runner()`; nothing else in this room cares."""

import asyncio
from importlib import import_module
from importlib.util import find_spec
from typing import cast


def runner() -> asyncio.Runner:
    """uvloop where it is installed, otherwise asyncio's own event loop."""
    return asyncio.Runner(loop_factory=new_loop)


def new_loop() -> asyncio.AbstractEventLoop:
    if find_spec("uvloop") is None:
        return asyncio.new_event_loop()
    return cast(asyncio.AbstractEventLoop, import_module("uvloop").new_event_loop())
