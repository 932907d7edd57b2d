"""The event loop to run on: uvloop where it is installed, else asyncio's own.

Whoever starts a process or a benchmark enters `runner()`; nothing else in this room cares."""

import asyncio
import importlib
import importlib.util
from typing import cast


def runner() -> asyncio.Runner:
    return asyncio.Runner(loop_factory=new_loop)


def new_loop() -> asyncio.AbstractEventLoop:
    if importlib.util.find_spec("uvloop") is None:
        return asyncio.new_event_loop()
    return cast(asyncio.AbstractEventLoop, importlib.import_module("uvloop").new_event_loop())
