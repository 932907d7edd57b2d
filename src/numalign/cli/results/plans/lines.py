"""Lines of CSV: a mapping of columns to values each."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping


def text(lines: Iterable[Mapping[str, object]]) -> str:
    """The columns are those of all lines, in the order in which they appear."""
    listed = list(lines)
    columns = list(dict.fromkeys(column for line in listed for column in line))
    written = io.StringIO()
    writer = csv.DictWriter(written, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(listed)
    return written.getvalue().rstrip("\n")
