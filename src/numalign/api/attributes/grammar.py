"""The grammar that our report attributes share: version tags, words, numbers, sizes, zone names and zone sets.

The modules that own an attribute build on it; docs/concepts/attributes.md shows the whole grammar. Values contain no
character that JSON or YAML would escape. Every reader raises only `AttributeTextError`. Zone 3 is named "node-3"; the
reader of zone names also accepts a sign and leading zeros, as the reference plugin does (scheduler plugin spec 4)."""

import re
import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, TypeVar

from numalign.api import errors
from numalign.api.decode import cpuset, quantity

ZONE_PREFIX: Final = "node-"
MAX_ZONE: Final = 65_535
"""Far above what Linux numbers, and small enough to be a bit in a set."""
MAX_DIGITS: Final = 20

ZONE_NAME: Final = re.compile(r"node-(?P<sign>[+-]?)(?P<digits>[0-9]+)")


class ZoneNameError(ValueError):
    """The name does not name a NUMA node, or the id has no name."""


def zone_name(zone: int) -> str:
    if not 0 <= zone <= MAX_ZONE:
        raise ZoneNameError(f"zone id {errors.echo(zone)} is not between 0 and {MAX_ZONE}")
    return f"{ZONE_PREFIX}{zone}"


@lru_cache(maxsize=1024)
def zone_id(name: str) -> int:
    """The zone id that the name carries; the whole rest after the prefix must be a number."""
    match = ZONE_NAME.fullmatch(name)
    if match is None or len(match["digits"]) > MAX_DIGITS:
        raise ZoneNameError(f"{errors.echo(name)} is not {ZONE_PREFIX}<number>")
    zone = int(match["sign"] + match["digits"])
    if not 0 <= zone <= MAX_ZONE:
        raise ZoneNameError(f"{errors.echo(name)} is not a zone between 0 and {MAX_ZONE}")
    return zone


VERSION: Final = 1
PARTS: Final = 1 << 14
"""Texts of each kind of part that are cached: most of them repeat in the next report of a node."""
TAG: Final = re.compile(r"v([0-9]{1,9});")
NUMBER: Final = re.compile(r"[0-9]{1,19}")
# Characters that a word contains unescaped; all others are written as %XX of their UTF-8 bytes.
UNSAFE: Final = re.compile(rb"[^-_./A-Za-z0-9]")
ESCAPE: Final = re.compile(rb"%([0-9A-F]{2})")
WORD: Final = re.compile(r"(?:[-_./A-Za-z0-9]|%[0-9A-F]{2})+")

Key = TypeVar("Key")
Value = TypeVar("Value")


class AttributeTextError(ValueError):
    """The text does not follow the grammar of the attribute; the message says which part."""


def tagged(body: str) -> str:
    return f"v{VERSION};{body}"


def version_and_body(text: str) -> tuple[int, str]:
    """Splits off the version tag, v<number>; with which every version of every attribute starts."""
    match = TAG.match(text)
    if match is None:
        raise AttributeTextError(f"{errors.echo(text)} does not start with a version tag like v{VERSION};")
    return int(match[1]), text[match.end() :]


def word(text: str) -> str:
    """A name or free text, with all separators escaped."""
    if not text:
        raise AttributeTextError("a name must not be empty")
    return UNSAFE.sub(lambda sign: b"%%%02X" % ord(sign[0]), text.encode()).decode()


@lru_cache(maxsize=4096)
def from_word(text: str) -> str:
    if WORD.fullmatch(text) is None:
        raise AttributeTextError(f"{errors.echo(text)} is not a word; escape its signs as %XX")
    try:
        # Names are looked up often: lookups are fastest where equal names are the same object.
        return sys.intern(ESCAPE.sub(lambda sign: bytes.fromhex(sign[1].decode()), text.encode()).decode())
    except UnicodeDecodeError as error:
        raise AttributeTextError(f"{errors.echo(text)} is not UTF-8 once unescaped") from error


def number(text: str) -> int:
    if NUMBER.fullmatch(text) is None or int(text) > quantity.INT64_MAX:
        raise AttributeTextError(f"{errors.echo(text)} is not a whole number from 0 to 2^63-1")
    return int(text)


def zone(text: str) -> int:
    """A zone id."""
    found = number(text)
    if found > MAX_ZONE:
        raise AttributeTextError(f"{errors.echo(text)} is not a zone from 0 to {MAX_ZONE}")
    return found


def size(amount: int) -> str:
    """A number of bytes, exact, with the largest binary suffix that divides it."""
    if not 0 <= amount <= quantity.INT64_MAX:
        raise AttributeTextError(f"{errors.echo(amount)} is not a size from 0 to 2^63-1")
    return str(quantity.of(amount, quantity.Format.BINARY_SI))


@lru_cache(maxsize=4096)
def from_size(text: str) -> int:
    try:
        amount = quantity.parse(text)
    except quantity.QuantityError as error:
        raise AttributeTextError(str(error)) from error
    if not amount.is_whole or not 0 <= amount.nanos <= quantity.INT64_MAX * quantity.NANO:
        raise AttributeTextError(f"{errors.echo(text)} is not a whole size from 0 to 2^63-1")
    return amount.value


def cpus(text: str) -> int:
    """A CPU set in the kernel's list format, which `cpuset.text` writes."""
    try:
        return cpuset.parse(text)
    except cpuset.CPUSetError as error:
        raise AttributeTextError(str(error)) from error


def zones(mask: int) -> str:
    """A zone set as a CPU set is written, with + between its parts: 0+2-3."""
    return cpuset.text(mask).replace(",", "+")


@lru_cache(maxsize=4096)
def from_zones(text: str) -> int:
    if "," in text:
        raise AttributeTextError(f"{errors.echo(text)} is not a set of zones; write + between its parts")
    return cpus(text.replace("+", ","))


def sizes(amounts: Mapping[str, int]) -> str:
    """Amounts in bytes by memory type: hugepages-1Gi=2Gi,memory=10Gi."""
    return ",".join(f"{word(kind)}={size(amount)}" for kind, amount in sorted(amounts.items()))


def from_sizes(text: str) -> dict[str, int]:
    pairs = (pair(item) for item in split(text, ","))
    return unique((from_word(kind), from_size(amount)) for kind, amount in pairs)


def pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise AttributeTextError(f"{errors.echo(text)} is not a name, an = and a value")
    return key, value


def split(text: str, separator: str) -> list[str]:
    """The parts of a list that may have none."""
    return text.split(separator) if text else []


def unique(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, Value]:
    found: dict[Key, Value] = {}
    for key, value in pairs:
        if key in found:
            raise AttributeTextError(f"{errors.echo(key)} occurs twice")
        found[key] = value
    return found
