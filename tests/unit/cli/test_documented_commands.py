"""Every command of ours that the documentation names exists, with its options.

Tests of walks type whole pages. This one also looks at commands that no test can type, because they need a
control-plane host, a registry or hours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from numalign.cli.main import app

ROOT = Path(__file__).parents[3]
PAGES = [
    *sorted(ROOT.glob("docs/**/*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted(ROOT.glob("charts/**/*.md")),
    *sorted(ROOT.glob("charts/**/NOTES.txt")),
    *sorted(ROOT.glob("examples/*.md")),
]
TREE: Any = typer.main.get_command(app)
FENCE = re.compile(r"^ *```(\w*)")
TYPED = re.compile(r"(?:^|[|;&(] *)((?:kubectl )?numalign (?:[^|;&>#)\\]|\\$)*)")
QUOTED = re.compile(r"`((?:kubectl )?numalign [^`|;&>]+)")
EVERYWHERE = {"--help", "-h", "--version"}


def named(text: str) -> Iterator[str]:
    """Commands in blocks that people type, and in quotes."""
    inside: str | None = None
    prose = []
    for line in re.sub(r"\\\n *(?:> )?", " ", text).splitlines():
        fence = FENCE.match(line)
        if fence:
            inside = fence[1] if inside is None else None
        elif inside is None:
            prose.append(line.strip())
        elif inside == "console" and line.startswith("$ "):
            yield from TYPED.findall(line[2:])
        elif inside in ("", "sh", "bash") and line.lstrip().startswith(("numalign ", "kubectl numalign ")):
            yield from TYPED.findall(line.lstrip())
    # A quote may go on in the next line.
    yield from QUOTED.findall(" ".join(prose))


def unknown(line: str) -> str:
    """The first word that is no command or no option; empty: all are known."""
    at, options = TREE, set(EVERYWHERE)
    for word in re.sub(r"^(kubectl )?numalign ", "", line).split():
        if word.startswith("-") and len(word) > 1:
            name = word.partition("=")[0].rstrip(".,")
            # Of a group, any of its commands may have the option.
            here = [*at.commands.values()] if hasattr(at, "commands") else [at]
            options = {name for each in here for param in each.params for name in (*param.opts, *param.secondary_opts)}
            if name not in options | EVERYWHERE:
                return word
        elif hasattr(at, "commands"):
            if word not in at.commands:
                # Placeholders have capitals.
                return word if re.fullmatch(r"[a-z][a-z-]*", word) else ""
            at = at.commands[word]
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_no_command_or_option_that_does_not_exist(page: Path) -> None:
    wrong = {line.strip(): word for line in named(page.read_text()) if (word := unknown(line))}
    assert wrong == {}


PAGE = """
Use `numalign doctor
--fix`, or `numalign topology NODE`.

```console
$ a | numalign deploy diff \\
> -o json  # exit code 2
numalign is not installed
```

```
numalign lab up NAME; numalign lab down
```
"""


def test_commands_are_found_in_quotes_and_in_what_is_typed() -> None:
    assert [" ".join(each.split()) for each in named(PAGE)] == [
        "numalign deploy diff -o json",
        "numalign lab up NAME",
        "numalign lab down",
        "numalign doctor --fix",
        "numalign topology NODE",
    ]


@pytest.mark.parametrize(
    "line, word",
    [
        ("numalign doctro", "doctro"),
        ("numalign deploy apply --forse", "--forse"),
        ("kubectl numalign topology --no-such", "--no-such"),
        ("numalign explain --snapshot", ""),
        ("numalign deploy apply -f values.yaml --set a=b --no-wait", ""),
        ("numalign cluster down [NAME]", ""),
    ],
)
def test_what_does_not_exist_is_noticed(line: str, word: str) -> None:
    assert unknown(line) == word
