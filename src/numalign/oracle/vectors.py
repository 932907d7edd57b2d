"""Recorded cases, ready to be put to the model: recognised, typed, with the machines that they name.

`load` takes files and gives every case once, however often it is found: a case is its family and its content, id
included. Whatever is wrong with a file is said before anything is replayed, as a `BadObject` that names file, line and
field. A field that is missing among the expectations is not wrong with the file: it is a difference."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from numalign.api import errors
from numalign.api.decode import decode
from numalign.api.errors import BadObject
from numalign.kubelet.versions import Minor
from numalign.oracle import families, loading
from numalign.oracle.families.family import RECORDED_FROM, Family, Origin
from numalign.oracle.families.hardware import Topologies, Topology
from numalign.oracle.loading import Found

TABLE = "topologies.json"
TABLE_NAMES = (TABLE, f"{TABLE}.gz", f"{TABLE}.xz")

COMPLAINT = re.compile(r"(?P<what>.*?)(?: - at `(?:key in )?\$\.?(?P<path>.*)`)?", re.DOTALL)
MISSING = re.compile(r"Object missing required field `(?P<field>.*)`")


class Vector(Struct, frozen=True):
    """One recorded case: its typed inputs for the model, and all of it in canonical form for the comparison."""

    where: str
    family: Family
    id: str
    case: Struct
    recorded: bytes
    origin: Origin


def load(paths: Iterable[Path]) -> list[Vector]:
    seen: dict[tuple[str, bytes], Vector] = {}
    for path in paths:
        for vector in _of_file(path):
            seen.setdefault((vector.family.name, vector.recorded), vector)
    return list(seen.values())


def of(found: Found, table: Callable[[], Topologies], minor: Minor = RECORDED_FROM) -> Vector:
    """One case; the table of machines is asked for only where the case names one."""
    family = _family(found)
    case = typed(family.case, found.value, found.where)
    named = getattr(case, "topology", None)
    topologies = table() if isinstance(named, str) else {}
    if isinstance(named, str) and named not in topologies:
        raise BadObject(loading.KIND, found.where, "topology", f"{errors.echo(named)} is not a machine in {TABLE}")
    return Vector(found.where, family, str(found.value["id"]), case, found.recorded, Origin(topologies, minor))


def _of_file(path: Path) -> list[Vector]:
    table = cache(lambda: topologies_in(path.parent))
    found = [of(each, table) for each in loading.values(path)]
    if not found:
        raise BadObject(loading.KIND, loading.name(path), "", "holds no case; give a file with recorded cases")
    return found


def _family(found: Found) -> Family:
    if not isinstance(found.value, dict):
        raise BadObject(loading.KIND, found.where, "", f"is {errors.echo(found.value)}; a case is a JSON object")
    if (family := families.recognised(found.value)) is None:
        known = ", ".join(each.name for each in families.FAMILIES)
        raise BadObject(loading.KIND, found.where, "", f"is a case of no known family ({known})")
    return family


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
        return BadObject(loading.KIND, where, path, "is missing; the case cannot be replayed without it")
    return BadObject(loading.KIND, where, path, f"{what.replace('`', '')}; correct it")


def topologies_in(folder: Path) -> Topologies:
    """The machines of the table in this folder, plain or compressed."""
    for path in (folder / each for each in TABLE_NAMES):
        if path.exists():
            return _table(path)
    raise BadObject(
        loading.KIND,
        loading.name(folder / TABLE),
        "",
        "is missing; the cases beside it name machines that it describes",
    )


def _table(path: Path) -> Topologies:
    text = loading.read(path)
    try:
        table = msgspec.json.decode(text, type=tuple[Topology, ...])
    except decode.UNREADABLE as problem:
        raise _explained(loading.name(path), str(problem)) from None
    return {topology.name: topology for topology in table}
