"""Prints results on stdout in one of three formats and errors on stderr, and ends a command that fails.

All commands use it. They pass a result as plain values; tables are drawn by the results modules. Nothing is printed
before a result is complete."""

from __future__ import annotations

import errno
from enum import StrEnum
from typing import NoReturn

import msgspec
import typer


class Format(StrEnum):
    """What `-o` accepts."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


class ListFormat(StrEnum):
    """What `-o` accepts where objects are listed."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


class LogForm(StrEnum):
    """What `--log-format` accepts."""

    TEXT = "text"
    JSON = "json"


def structured(value: object, fmt: Format | ListFormat) -> str:
    """JSON or YAML text of structs and plain values, keys in the order in which they were given."""
    plain = msgspec.to_builtins(value, str_keys=True)
    if fmt in (Format.YAML, ListFormat.YAML):
        return _yaml(plain)
    return msgspec.json.format(msgspec.json.encode(plain), indent=2).decode()


def show(text: str) -> None:
    """Print a result. The command fails if the output cannot be written."""
    try:
        # Always UTF-8: a terminal that cannot show a character must not fail the command.
        typer.echo(text.encode())
    except OSError as problem:
        if problem.errno == errno.EPIPE:
            raise
        fail(f"the output cannot be written: {problem.strerror}")


def printable(text: str) -> str:
    """Text from outside, with control characters replaced by their codes."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def say(text: str) -> None:
    """Print lines for a person on stderr, beside a result that a program reads from stdout."""
    typer.echo(text, err=True)


def warn(message: str) -> None:
    """Print a warning on stderr."""
    typer.echo(f"numalign: warning: {printable(message)}", err=True)


def fail(message: str, code: int = 2) -> NoReturn:
    """Print an error on stderr and exit."""
    typer.echo(f"numalign: {printable(message)}", err=True)
    raise typer.Exit(code)


def _yaml(plain: object) -> str:
    import yaml

    class Plain(yaml.SafeDumper):
        """Repeats a value that occurs twice: an alias would be correct and unreadable."""

        def ignore_aliases(self, data: object) -> bool:
            return True

    text: str = yaml.dump(plain, Dumper=Plain, sort_keys=False, allow_unicode=True, width=120)
    return text.rstrip("\n")
