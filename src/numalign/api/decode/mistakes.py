"""Collects the mistakes of a file, so that its author learns all of them at once.

A reader makes one `Mistakes`, reads each part of the file that stands alone within `part` or `each`, and calls `refuse`
before it uses what it read. Rules about several parts come after `refuse`: where a part cannot be read, they would
report what is no mistake."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final

from numalign.api.decode import fields
from numalign.api.decode.fields import Field
from numalign.api.errors import BadObject, SeveralMistakes

MOST_UNKNOWN: Final = 100
"""Keys of one mapping. To suggest another one for each takes time, and files from elsewhere may have very many."""


class Mistakes:
    def __init__(self) -> None:
        self._found: list[BadObject] = []

    @contextmanager
    def part(self) -> Iterator[None]:
        """The rest of the block is left out where a mistake is found."""
        try:
            yield
        except BadObject as problem:
            self._found += problem.every

    def each(self, parts: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
        """What the parts read, by their names; without those that have a mistake."""
        read = {}
        for name, reader in parts.items():
            with self.part():
                read[name] = reader()
        return read

    def only(self, field: Field, known: Collection[str]) -> None:
        """Collects unknown keys."""
        self._found += islice(fields.unknown(field, known), MOST_UNKNOWN)

    def refuse(self) -> None:
        """BadObject if there was a mistake."""
        if len(self._found) > 1:
            raise SeveralMistakes(self._found)
        if self._found:
            raise self._found[0]
