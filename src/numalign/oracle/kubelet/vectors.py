"""Loads recorded kubelet cases: recognised by family, typed, with the machines that they name.

`replay` and `reask` use them. `load` returns every distinct case once. An unreadable file raises a `BadObject` with
file, line and field before anything is replayed. An expected field that is missing in a case is a difference, not an
error in the file."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from numalign.api import errors
from numalign.api.decode import decode
from numalign.api.errors import BadObject
from numalign.kubelet.versions import Minor
from numalign.oracle.harness import files
from numalign.oracle.harness.files import RecordedValue
from numalign.oracle.kubelet import cpu, devices, memory, merge, sequence
from numalign.oracle.kubelet.family import RECORDED_FROM, CaseOrigin, Family
from numalign.oracle.kubelet.forms import Topologies, Topology

FAMILIES: tuple[Family, ...] = (
    merge.FAMILY,
    cpu.STATIC,
    cpu.DISTRIBUTE,
    cpu.LIVELOCK,
    memory.FAMILY,
    devices.FAMILY,
    sequence.FAMILY,
    sequence.POD_LEVEL,
)

TABLE = "topologies.json"
TABLE_NAMES = (TABLE, f"{TABLE}.gz", f"{TABLE}.xz")

COMPLAINT = re.compile(r"(?P<what>.*?)(?: - at `(?:key in )?\$\.?(?P<path>.*)`)?", re.DOTALL)
MISSING = re.compile(r"Object missing required field `(?P<field>.*)`")


class Vector(Struct, frozen=True):
    """One recorded case: typed inputs for the model, and its canonical form for the comparison."""

    where: str
    family: Family
    id: str
    case: Struct
    recorded: bytes
    origin: CaseOrigin


def load(paths: Iterable[Path]) -> list[Vector]:
    seen: dict[tuple[str, bytes], Vector] = {}
    for path in paths:
        for vector in _of_file(path):
            seen.setdefault((vector.family.name, vector.recorded), vector)
    return list(seen.values())


def of(found: RecordedValue, table: Callable[[], Topologies], minor: Minor = RECORDED_FROM) -> Vector:
    """One case. `table` is read only if the case names a machine."""
    family = _family(found)
    case = typed(family.case, found.value, found.where)
    named = getattr(case, "topology", None)
    topologies = table() if isinstance(named, str) else {}
    if isinstance(named, str) and named not in topologies:
        raise BadObject(files.KIND, found.where, "topology", f"{errors.echo(named)} is not a machine in {TABLE}")
    return Vector(found.where, family, str(found.value["id"]), case, found.recorded, CaseOrigin(topologies, minor))


def _of_file(path: Path) -> list[Vector]:
    table = cache(lambda: topologies_in(path.parent))
    found = [of(each, table) for each in files.values(path)]
    if not found:
        raise BadObject(files.KIND, files.name(path), "", "holds no case; give a file with recorded cases")
    return found


def _family(found: RecordedValue) -> Family:
    if not isinstance(found.value, dict):
        raise BadObject(files.KIND, found.where, "", f"is {errors.echo(found.value)}; a case is a JSON object")
    if (family := recognised(found.value)) is None:
        known = ", ".join(each.name for each in FAMILIES)
        raise BadObject(files.KIND, found.where, "", f"is a case of no known family ({known})")
    return family


def recognised(case: Mapping[str, object]) -> Family | None:
    """The family whose inputs the case has most of. A case that lacks a field is still recognised, so that the error
    can name the field."""
    likeliest = max(FAMILIES, key=lambda family: _likeness(family, case))
    present, _, _ = _likeness(likeliest, case)
    return likeliest if present > 0.5 else None


def _likeness(family: Family, case: Mapping[str, object]) -> tuple[float, int, bool]:
    """The share of the family's inputs that are present, the number of inputs, and whether the id has the family's
    prefix."""
    present = len(family.inputs & case.keys()) / len(family.inputs)
    named = bool(family.prefix) and str(case.get("id", "")).startswith(family.prefix)
    return present, len(family.inputs), named


def typed(kind: type[Struct], value: object, where: str = "") -> Struct:
    try:
        return msgspec.convert(value, kind)
    except decode.UNREADABLE as problem:
        raise _explained(where, str(problem)) from None


def _explained(where: str, complaint: str) -> BadObject:
    match = COMPLAINT.fullmatch(complaint)
    what, path = (match["what"], match["path"] or "") if match else (complaint, "")
    if missing := MISSING.fullmatch(what):
        path = f"{path}.{missing['field']}".lstrip(".")
        return BadObject(files.KIND, where, path, "is missing; the case cannot be replayed without it")
    return BadObject(files.KIND, where, path, f"{what.replace('`', '')}; correct it")


def topologies_in(folder: Path) -> Topologies:
    """The machines of the table in this folder, plain or compressed."""
    for path in (folder / each for each in TABLE_NAMES):
        if path.exists():
            return _table(path)
    raise BadObject(
        files.KIND, files.name(folder / TABLE), "", "is missing; the cases beside it name machines that it describes"
    )


def _table(path: Path) -> Topologies:
    text = files.read(path)
    try:
        table = msgspec.json.decode(text, type=tuple[Topology, ...])
    except decode.UNREADABLE as problem:
        raise _explained(files.name(path), str(problem)) from None
    return {topology.name: topology for topology in table}
