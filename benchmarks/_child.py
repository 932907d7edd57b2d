"""Measuring in a process of its own: nothing is compiled, loaded or grown there yet.

A module is run by name with one JSON argument and prints one JSON answer; `asked` is the parent's side of it, `answer`
the child's."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

Task = TypeVar("Task")


def asked(module: str, task: object) -> dict[str, float]:
    command = [sys.executable, "-m", module, msgspec.json.encode(task).decode()]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        told = ran.stderr.strip().splitlines()
        raise RuntimeError(f"{module}: {told[-1] if told else f'ended with {ran.returncode}'}")
    found: dict[str, float] = msgspec.json.decode(ran.stdout)
    return found


def answer(kind: type[Task], measure: Callable[[Task], dict[str, Any]]) -> None:
    print(msgspec.json.encode(measure(msgspec.json.decode(sys.argv[1], type=kind))).decode())
