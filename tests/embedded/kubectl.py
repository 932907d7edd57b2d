"""kubectl as people type it, and what it says.

A command is a line; the answer is its exit code and all it printed. `Like` is text with `...` for what is different
every time (names, ages), compared without regard to the width of columns."""

from __future__ import annotations

import doctest
import os
import shlex
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

from numalign.lab import build

FLAGS: Final = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PATIENCE: Final = 200
"""Seconds: longer than what tests let kubectl itself wait for, on a machine that runs many of them at a time."""


def program(name: str = "kubectl") -> Path | None:
    """A program of the lab, built if it is not there yet; None without Go."""
    if not build.found():
        return None
    (built,) = build.build(build.chosen([name]), lambda _: None)
    return built.path


class Like(str):
    """Equal to every text that reads like this one."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and doctest.OutputChecker().check_output(str(self), str(other), FLAGS)

    def __ne__(self, other: object) -> bool:
        return not self == other


class Kubectl(NamedTuple):
    """kubectl, a kubeconfig, and the namespace that its commands are about."""

    program: Path
    kubeconfig: Path
    home: Path
    namespace: str = "default"

    def __call__(self, line: str, stdin: str = "", **environment: str) -> tuple[int, str]:
        words = [str(self.program), *shlex.split(line)]
        if self.namespace != "default" and not {"-A", "-n", "--all-namespaces"} & set(words):
            words[1:1] = ["-n", self.namespace]
        known = {"KUBECONFIG": str(self.kubeconfig), "HOME": str(self.home), "TZ": "UTC"}
        ran = subprocess.run(
            words,
            input=stdin,
            env={**os.environ, **known, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        return ran.returncode, ran.stdout

    def said(self, line: str, stdin: str = "", **environment: str) -> str:
        """What a command that has to succeed says."""
        code, text = self(line, stdin, **environment)
        assert code == 0, f"kubectl {line}: {text}"
        return text
