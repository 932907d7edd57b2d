"""The reader of walks: what it takes for a command, for its answer and for equal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import walks
from tests.walks import Shell, Step

PAGE = """\
# A page

```console
$ export WHO=me && mkdir here
$ echo "I am $WHO" && pwd | tail -c 5
I am me
...
```

Not a command:

```
$ false
```

```console
$ cat <<END
> two
> lines
> END
two
lines
$ sh -c 'echo no; exit 3'  # exit code 3
no
```
"""


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(walks, "ROOT", tmp_path)
    monkeypatch.setattr(walks, "PATIENCE", 5.0)
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    return path


@pytest.fixture
def shell(page: Path, tmp_path: Path) -> Iterator[Shell]:
    with walks.shell(tmp_path / "home", {}) as opened:
        yield opened


def test_commands_are_found_with_their_line_answer_and_exit_code(page: Path) -> None:
    assert walks.steps(page) == [
        Step(4, "export WHO=me && mkdir here\n", ""),
        Step(5, 'echo "I am $WHO" && pwd | tail -c 5\n', "I am me\n...\n"),
        Step(17, "cat <<END\ntwo\nlines\nEND\n", "two\nlines\n"),
        Step(23, "sh -c 'echo no; exit 3'  # exit code 3\n", "no\n", 3),
    ]


def test_a_page_that_shows_what_happens_is_walked_to_its_end(page: Path, shell: Shell) -> None:
    assert walks.walk(page, shell) == 4


@pytest.mark.parametrize("there, instead", [("I am me", "I am you"), ("exit code 3", "exit code 4"), ("two\nl", "l")])
def test_a_page_that_shows_something_else_fails(page: Path, shell: Shell, there: str, instead: str) -> None:
    page.write_text(PAGE.replace(there, instead))
    with pytest.raises(AssertionError, match=r"(?s)page\.md:\d+: .*ends with \d"):
        walks.walk(page, shell)


def test_a_command_that_prints_what_the_page_does_not_show_fails(page: Path, shell: Shell) -> None:
    page.write_text("```console\n$ echo some; echo more\nsome\n```\n")
    with pytest.raises(AssertionError, match="prints\nsome\nmore"):
        walks.walk(page, shell)


def test_a_command_that_never_ends_is_given_up(page: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walks, "PATIENCE", 0.2)
    page.write_text("```console\n$ sleep 60\n```\n")
    with pytest.raises(AssertionError, match="no end"):
        walks.walk(page, shell)


def test_a_command_that_looks_is_repeated_until_the_page_is_right(page: Path, tmp_path: Path) -> None:
    kubectl = tmp_path / "kubectl"
    kubectl.write_text("#!/bin/sh\ncat ~/state; echo Running > ~/state\n")
    kubectl.chmod(0o755)
    with walks.shell(tmp_path / "other", {"kubectl": kubectl}) as opened:
        page.write_text("```console\n$ echo Pending > ~/state\n$ kubectl get pod x\nRunning\n```\n")
        assert walks.walk(page, opened) == 2


@pytest.mark.parametrize(
    "one, other",
    [
        ("worker-1   1/1   Running   0   3s", "worker-1   1/1   Running   0   2m14s"),
        ("at https://127.0.0.1:40083", "at https://127.0.0.1:1"),
        ("numalign-scheduler-64f4fdc845-tt8jr", "numalign-scheduler-7d9c5b4f68-x2x9z"),
        ("numalign-agent-6qqc5", "numalign-agent-zzzzz"),
    ],
)
def test_what_is_different_every_time_does_not_count(one: str, other: str) -> None:
    assert walks.plain(one) == walks.plain(other)
