"""What a check is: an id that never changes, a severity, an explanation, and a function that finds the fault.

The modules that judge declare their checks in `CHECKS`; `diagnosis` runs them. A check yields one `Sighting` for each
object that has the fault. It never raises for the content of an object."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from numalign.deploy.doctor.repairs import Repair

if TYPE_CHECKING:
    from numalign.deploy.doctor.view import View


class Severity(StrEnum):
    """Ascending: `error` breaks scheduling or alignment, `warning` may, `info` is worth knowing."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO


class Sighting(Struct, frozen=True, kw_only=True):
    """One object with the fault. Sightings of equal words are shown as one finding."""

    seen: str
    node: str = ""
    """The node that it concerns; empty: the cluster."""
    where: str = ""
    """The object; empty: the node."""
    fix: str = ""
    """Instead of the check's own."""
    severity: Severity | None = None
    """Instead of the check's own."""
    repair: Repair | None = None


class Check(Struct, frozen=True, kw_only=True):
    id: str
    severity: Severity
    title: str
    why: str
    """What it means for pods."""
    fix: str
    needs: tuple[str, ...] = ()
    """Plural names of resources; where one could not be read, the check is skipped."""
    rule: str = ""
    """The rule of the reference deployer's validator that it covers."""
    find: Callable[[View], Iterable[Sighting]]
