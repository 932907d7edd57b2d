"""The name of a zone in topology reports: NUMA node 3 is "node-3".

The one place that knows it. Writers get this name; the reader also takes a sign and leading zeros, as the reference
plugin does (scheduler plugin spec 4).
"""

import re
from functools import lru_cache
from typing import Final

from numalign.api import errors

PREFIX: Final = "node-"
MAX_ZONE: Final = 65_535
"""Far above what Linux numbers, and small enough to be a bit in a set."""
MAX_DIGITS: Final = 20

NAME: Final = re.compile(r"node-(?P<sign>[+-]?)(?P<digits>[0-9]+)")


class ZoneNameError(ValueError):
    """The name does not name a NUMA node, or the id has no name."""


def name_of(zone: int) -> str:
    if not 0 <= zone <= MAX_ZONE:
        raise ZoneNameError(f"zone id {errors.echo(zone)} is not between 0 and {MAX_ZONE}")
    return f"{PREFIX}{zone}"


@lru_cache(maxsize=1024)
def id_of(name: str) -> int:
    """The zone id that the name carries; the whole rest after the prefix must be a number."""
    match = NAME.fullmatch(name)
    if match is None or len(match["digits"]) > MAX_DIGITS:
        raise ZoneNameError(f"{errors.echo(name)} is not {PREFIX}<number>")
    zone = int(match["sign"] + match["digits"])
    if not 0 <= zone <= MAX_ZONE:
        raise ZoneNameError(f"{errors.echo(name)} is not a zone between 0 and {MAX_ZONE}")
    return zone
