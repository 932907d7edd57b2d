"""How every command speaks: results on stdout in one of three formats, complaints on stderr, one way to give up.

Commands turn their result into plain values and hand them here; tables are drawn by the commands themselves. Nothing
is printed before a result is complete, so output that was seen was meant."""

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


class LogForm(StrEnum):
    """What `--log-format` accepts."""

    TEXT = "text"
    JSON = "json"


def structured(value: object, fmt: Format) -> str:
    """JSON or YAML text of structs and plain values, keys in the order in which they were given."""
    plain = msgspec.to_builtins(value, str_keys=True)
    if fmt is Format.YAML:
        return _yaml(plain)
    return msgspec.json.format(msgspec.json.encode(plain), indent=2).decode()


def show(text: str) -> None:
    """Print a result. Output that cannot be written is a failure like any other."""
    try:
        # UTF-8 wherever it goes: a terminal that cannot show it must not turn an answer into an error.
        typer.echo(text.encode())
    except OSError as problem:
        if problem.errno == errno.EPIPE:
            raise
        fail(f"the output cannot be written: {problem.strerror}")


def printable(text: str) -> str:
    """Text that came from outside: characters that would steer the terminal are shown as their codes."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def warn(message: str) -> None:
    """Say something that does not stop the command."""
    typer.echo(f"numalign: warning: {printable(message)}", err=True)


def fail(message: str, code: int = 2) -> NoReturn:
    """Give up: say why, and exit."""
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
