"""How the pages write amounts, times and names of resources. Templates have these functions as filters."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from numalign.api.attributes import grammar
from numalign.api.decode import cpuset
from numalign.placement.explain import amounts

ORDER: Final = ("cpu", "memory")


def amount(number: int, resource: str) -> str:
    """96, 1.5, 512Gi; cpu is given in thousandths."""
    return f"{'-' * (number < 0)}{amounts.bare(resource, abs(number))}"


def grouped(number: str) -> str:
    """230,097: a whole number with its thousands apart; anything else as it is."""
    return f"{int(number):,}" if number.isdecimal() else number


def amount_up(number: int, resource: str) -> str:
    """The same, rounded up, as what is needed or short is written."""
    return amounts.bare(resource, number, up=True)


def duration(seconds: float) -> str:
    return amounts.duration(max(0.0, seconds))


def ago(then: float | None, now: float) -> str:
    return "at an unknown time" if then is None else f"{duration(now - then)} ago"


def clock(at: float) -> str:
    """2026-11-18 15:03:02 UTC"""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def short_resource(name: str) -> str:
    """The name without its domain: gpu for nvidia.com/gpu."""
    return name.rpartition("/")[2]


def cpus(ids: Iterable[int]) -> str:
    """0-3,8: as the kernel lists them."""
    return cpuset.text(cpuset.of(ids))


def placement(text: str) -> str:
    """main in zone 1: what the scheduler wrote about a pod's zones, in words; as it came if it is of another kind."""
    try:
        version, body = grammar.version_and_body(text)
    except grammar.AttributeTextError:
        return text
    if version != grammar.VERSION:
        return text
    parts = (part.partition("=") for part in grammar.split(body, ";"))
    return ", ".join(f"{grammar.from_word(name)} in zone {zones.replace('|', ' or ')}" for name, _, zones in parts)


def in_order(names: set[str]) -> list[str]:
    """CPUs and memory first, then devices, then hugepages."""
    return sorted(names, key=lambda name: (name not in ORDER, name.startswith("hugepages-"), name))
