"""Go's patterns for names, which files of RTE's users are written in.

`exclusions` asks. They are a shell's but for the details: ^ alone negates a class, a backslash takes the next character
as it is, and a pattern that makes no sense matches nothing."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

KEPT: Final = 1024
NO_SENSE: Final = re.compile(r"(?!)")


def matches(pattern: str, text: str) -> bool:
    return _compiled(pattern).fullmatch(text) is not None


@lru_cache(KEPT)
def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(_Reader(pattern).expression(), re.DOTALL)
    except IndexError:
        return NO_SENSE


class _Reader:
    """Goes through a pattern; IndexError where it ends too early or makes no sense."""

    def __init__(self, pattern: str) -> None:
        self.left = list(pattern)

    def expression(self) -> str:
        parts = []
        while self.left:
            match self.left.pop(0):
                case "*":
                    parts.append("[^/]*")
                case "?":
                    parts.append("[^/]")
                case "[":
                    parts.append(self._class())
                case "\\":
                    parts.append(re.escape(self.left.pop(0)))
                case letter:
                    parts.append(re.escape(letter))
        return "".join(parts)

    def _class(self) -> str:
        negated = self.left[0] == "^"
        if negated:
            self.left.pop(0)
        ranges = [self._range()]
        while self.left[0] != "]":
            ranges.append(self._range())
        self.left.pop(0)
        members = "".join(f"{re.escape(low)}-{re.escape(high)}" for low, high in ranges if low <= high)
        if not members:
            return "." if negated else "(?!)"
        return f"[{'^' if negated else ''}{members}]"

    def _range(self) -> tuple[str, str]:
        low = high = self._member()
        if self.left[0] == "-":
            self.left.pop(0)
            high = self._member()
        return low, high

    def _member(self) -> str:
        letter = self.left.pop(0)
        if letter in "-]":
            raise IndexError
        return self.left.pop(0) if letter == "\\" else letter
