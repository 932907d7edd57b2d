"""A page of the documentation as a test: its console blocks are typed into one shell, answer by answer.

A line that begins with `$ ` is a command, and lines that begin with `> ` go on with it; all other lines are what the
command prints. A command without such lines may print anything. `...` stands for any text. Ages, ports, hashes in names
and the width of columns do not count. A command that only looks is repeated until it prints what the page shows,
because a cluster needs a moment to get there. A comment `# exit code 2` behind a command states how it ends; without
one it has to succeed. Tests of each tier choose the pages and the shell's environment."""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.embedded.kubectl import Like

ROOT: Final = Path(__file__).parents[1]
BLOCK: Final = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ENDS: Final = re.compile(r"#\s*exit code (\d+)\s*$")
LOOKS: Final = re.compile(
    r"(kubectl (-n \S+ )?(get|describe|logs|wait|rollout status|top|auth)|helm (list|status|history)"
    r"|numalign (explain|why|topology|nodes|doctor|plan (capacity|what-if|resize)"
    r"|deploy (status|diff|wait|validate)|scheduler state|cluster status))\b"
)
PATIENCE: Final = 90.0
PAUSE: Final = 0.5
DIFFERENT: Final = (
    (re.compile(r"\b\d+(ms|s|m|h|d)(\d+s)?\b"), "AGE"),
    (re.compile(r"(127\.0\.0\.1|\[::1\]):\d+"), "ADDRESS"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*"), "TIME"),
    # A pod of a Deployment, then one of a DaemonSet or ReplicaSet.
    (re.compile(r"-[0-9a-f]{8,10}-[a-z0-9]{5}\b"), "-HASH"),
    (re.compile(r"(?<=-agent)-[a-z0-9]{5}\b"), "-HASH"),
    # Progress, which only a command that takes a while shows.
    (re.compile(r"^starting .+; waiting for .+\n", re.MULTILINE), ""),
)


class Step(NamedTuple):
    """A command of a page, and what the page shows that it prints."""

    line: int
    command: str
    shown: str
    ends: int = 0

    @property
    def looks(self) -> bool:
        return LOOKS.match(self.command) is not None


def steps(page: Path) -> list[Step]:
    text = page.read_text()
    return [
        step for block in BLOCK.finditer(text) for step in _in_block(block[1], text.count("\n", 0, block.start(1)) + 1)
    ]


def _in_block(block: str, first: int) -> Iterator[Step]:
    number, command, shown = 0, "", ""
    for line, text in enumerate(block.splitlines(keepends=True), first):
        if text.startswith("$ "):
            if command:
                yield _step(number, command, shown)
            number, command, shown = line, text[2:], ""
        elif text.startswith("> ") and not shown:
            command += text[2:]
        else:
            assert command, f"line {line}: a console block begins with a command"
            shown += text
    yield _step(number, command, shown)


def _step(number: int, command: str, shown: str) -> Step:
    ends = ENDS.search(command)
    return Step(number, command, shown, int(ends[1]) if ends else 0)


class Shell:
    """One bash that keeps its variables and its folder between commands."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._home = environment["HOME"]
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            env=dict(environment),
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # Its commands end with it.
            start_new_session=True,
        )
        self._said = 0

    def type(self, command: str) -> tuple[int, str]:
        """The exit code of a command and what it printed."""
        assert self._process.stdin is not None
        self._said += 1
        mark = f"--{self._said}-{os.getpid()}--"
        # The newline before the mark ends a last line without one; a command must not read the shell's own input.
        typed = f"{{ {command.rstrip()}\n}} < /dev/null; printf '\\n{mark}%s\\n' $?\n"
        self._process.stdin.write(typed.encode())
        self._process.stdin.flush()
        text = self._until(f"\n{mark}".encode())
        printed, _, code = text.partition(f"\n{mark}")
        return int(code), printed.replace(self._home, "~")

    def _until(self, mark: bytes) -> str:
        assert self._process.stdout is not None
        found, until = b"", time.monotonic() + PATIENCE
        with selectors.DefaultSelector() as ready:
            ready.register(self._process.stdout, selectors.EVENT_READ)
            while not (mark in found and found.endswith(b"\n")):
                assert ready.select(until - time.monotonic()), f"no end after {PATIENCE} s:\n{found.decode()}"
                more = os.read(self._process.stdout.fileno(), 65536)
                assert more, f"the shell ended:\n{found.decode()}"
                found += more
        return found.decode()

    def close(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()


@contextmanager
def shell(home: Path, programs: Mapping[str, Path], **environment: str) -> Iterator[Shell]:
    """A shell in the repository's folder, whose home is the test's own and whose path begins with these programs."""
    found = home / "bin"
    found.mkdir(parents=True)
    for name, program in programs.items():
        (found / name).symlink_to(program)
    inherited = {name: value for name, value in os.environ.items() if name not in ("KUBECONFIG", "NUMALIGN_CLUSTERS")}
    known = {"HOME": str(home), "PATH": f"{found}:{os.environ['PATH']}", "TZ": "UTC", "COLUMNS": "100", "TERM": "dumb"}
    opened = Shell({**inherited, **known, **environment})
    try:
        yield opened
    finally:
        opened.close()


def walk(page: Path, shell: Shell) -> int:
    """Type the commands of a page; the number of commands. Fails at the first answer that differs from the page."""
    typed = steps(page)
    for step in typed:
        _take(step, shell, page.relative_to(ROOT))
    return len(typed)


def _take(step: Step, shell: Shell, page: Path) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        code, printed = shell.type(step.command)
        if code == step.ends and (not step.shown or Like(plain(step.shown)) == plain(printed)):
            return
        again = step.looks and time.monotonic() < until
        assert again, (
            f"{page}:{step.line}: `{step.command.strip()}` ends with {code} (the page: {step.ends}) and prints\n"
            f"{printed}\nThe page shows\n{step.shown}"
        )
        time.sleep(PAUSE)


def plain(text: str) -> str:
    """The text without what is different every time."""
    for pattern, name in DIFFERENT:
        text = pattern.sub(name, text)
    return text.strip()
