"""A stream of bytes into lines, however it was cut on its way.

`informer` feeds what arrives of a watch and gets the events that are complete. A line is joined once, when its end
is there."""

from typing import Final

LONGEST: Final = 64 << 20
"""Bytes of one line; the server limits objects to a few MB."""


class TooLong(ValueError):
    """No line end within the limit: this is not a watch stream."""


class Lines:
    def __init__(self) -> None:
        self._begun: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that end in this piece, without line ends and without empty lines."""
        head, newline, rest = piece.partition(b"\n")
        self._size += len(head)
        if self._size > LONGEST:
            raise TooLong(f"a line of more than {LONGEST >> 20} MiB")
        self._begun.append(head)
        if not newline:
            return []
        first = b"".join(self._begun)
        *others, begun = rest.split(b"\n")
        self._begun, self._size = [begun], len(begun)
        return [line for line in (first, *others) if line.strip()]
