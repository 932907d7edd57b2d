"""How help and usage errors of all commands read: no word is broken at the end of a line; numbers are called numbers.

typer wraps help with a copy of click that breaks words at hyphens, so that `single-numa-node` ends on two lines and
cannot be copied. `main` calls `install` once. Where a later typer has other insides, help is wrapped as it does it. A
shell that asks for completions sets a variable; only then are the shells' formats loaded."""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Sequence
from typing import Any, Final

NUMBERS: Final = {
    "IntParamType": "whole number",
    "IntRange": "whole number",
    "FloatParamType": "number",
    "FloatRange": "number",
}


COMPLETION_VARIABLE: Final = "_NUMALIGN_COMPLETE"


def install() -> None:
    if COMPLETION_VARIABLE in os.environ:
        _completion().completion_init()
    with contextlib.suppress(ImportError, AttributeError):
        wrapping: Any = importlib.import_module("typer._click._textwrap")
        wrapping.TextWrapper = _whole_words(wrapping.TextWrapper)
    with contextlib.suppress(ImportError, AttributeError):
        types: Any = importlib.import_module("typer._click.types")
        for kind, name in NUMBERS.items():
            getattr(types, kind).name = name


def complete(words: Sequence[str]) -> None:
    """Has the next call of the command print what may complete the last word, a line each, as for bash."""
    os.environ |= {
        COMPLETION_VARIABLE: "complete_bash",
        "COMP_WORDS": " ".join(word.replace(" ", "\\ ") for word in words),
        "COMP_CWORD": str(len(words) - 1),
    }
    _completion().completion_init()


def completion_script(program: str, shell: str) -> str:
    made: str = _completion().get_completion_script(prog_name=program, complete_var=COMPLETION_VARIABLE, shell=shell)
    return made


def _completion() -> Any:
    """typer does not declare what this module has."""
    return importlib.import_module("typer.completion")


def _whole_words(wrapper: type) -> type:
    class WholeWords(wrapper):  # type: ignore[misc]
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            self.break_on_hyphens = self.break_long_words = False

    return WholeWords
