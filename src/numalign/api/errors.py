"""The error for objects that cannot be used.

`decode` raises it for input of the wrong shape, and readers of an object for invalid values. It names the object, the
field, the error and the remedy, so that the sentence fits a log, an Event or a terminal. It never holds the object, and
quotes at most `ECHO_LIMIT` characters of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ECHO_LIMIT = 80


@dataclass(eq=False)
class BadObject(Exception):
    """Reads like: Pod default/web, spec.containers[0].resources.requests[cpu]: "2 cores" is not a quantity; ..."""

    kind: str
    name: str
    field: str
    why: str

    def __str__(self) -> str:
        thing = f"{self.kind} {self.name}" if self.name else self.kind
        return f"{thing}, {self.field}: {self.why}" if self.field else f"{thing}: {self.why}"

    @property
    def every(self) -> Sequence["BadObject"]:
        """The mistakes one by one."""
        return (self,)


class SeveralMistakes(BadObject):
    """More than one mistake of an object; names the first and counts the others."""

    def __init__(self, found: Sequence[BadObject]) -> None:
        first, *others = found
        super().__init__(first.kind, first.name, first.field, first.why)
        self._found, self._others = tuple(found), len(others)

    def __str__(self) -> str:
        return f"{super().__str__()} (and {self._others} more {'mistake' if self._others == 1 else 'mistakes'})"

    @property
    def every(self) -> Sequence[BadObject]:
        return self._found


def echo(value: object) -> str:
    """The value as it is written in the file, in one short line; a list or an object only by its type."""
    match value:
        case str():
            return f'"{clipped(value)}"'
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case int():
            # Printing a number of thousands of digits is slow, and Python refuses it beyond 4300 of them.
            return str(value) if value.bit_length() < 256 else "a number of more than 75 digits"
        case float():
            return repr(value)
        case Mapping():
            return "an object"
        case list() | tuple():
            return "a list"
    return f"a value of type {type(value).__name__}"


def clipped(text: str) -> str:
    """The text on one line and at most `ECHO_LIMIT` of its characters, so that no object can flood or forge a log."""
    return repr(text[:ECHO_LIMIT])[1:-1] + ("..." if len(text) > ECHO_LIMIT else "")
