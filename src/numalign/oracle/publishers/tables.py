"""Reads recorded cases of the topology publishers: tables of rows, by section and name.

`recorded` calls `recognised` to detect such a file. A row holds input and outcome in one object; the suite decides
which columns are which. A text that begins with @ refers to another entry of the file."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from numalign.api import errors
from numalign.api.errors import BadObject
from numalign.oracle.harness.divergence import Raw
from numalign.oracle.harness.files import KIND, RecordedValue

SECTIONS: Final = frozenset(
    {"fingerprint", "nrt", "leb89", "numaplacement", "sysinfo", "exporter", "updater", "kubelet"}
)
DATA_SETS: Final = frozenset({"fingerprint.pod_set_259"})
"""Rows that are not cases; cases refer to them."""
OUTCOMES: Final = frozenset(
    {
        "allow", "bytes", "bytes_per_numa", "chars", "compatible", "count", "encoded", "encoded_length", "entries",
        "error", "excluded", "exclusive", "expected", "fingerprint", "found", "hash", "included", "json", "kept",
        "left", "map", "metadata", "ns_hash", "numa", "ok", "path", "payload", "pod_hash", "present", "repr", "result",
        "steps", "string", "triggers", "updater", "valid", "value", "watchable", "watched", "zones",
    }
)  # fmt: skip
"""Columns that are outcomes, unless `GIVEN` lists them for the suite."""
GIVEN: Final[Mapping[str, frozenset[str]]] = {
    "fingerprint.check": frozenset({"fingerprint"}),
    "leb89.encode": frozenset({"value"}),
    "leb89.length_boundaries": frozenset({"value"}),
    "nrt.quantity_pattern_derived": frozenset({"value"}),
    "numaplacement.pack_metadata": frozenset({"payload"}),
    "numaplacement.unpack_errors": frozenset({"metadata"}),
    "numaplacement.unpack_partial": frozenset({"metadata"}),
    "numaplacement.validate_for_decoder": frozenset({"payload"}),
    "numaplacement.validate_shared": frozenset({"payload"}),
    "numaplacement.vector_decode": frozenset({"encoded"}),
    "numaplacement.decoder_result": frozenset({"payload"}),
    "exporter.locality_present": frozenset({"numa"}),
    "updater.state_events_derived": frozenset({"path"}),
}
GAINED: Final[Mapping[str, frozenset[str]]] = {
    "nrt.numa_id_to_name": frozenset({"name"}),
    "nrt.numa_name_to_id": frozenset({"id"}),
    "numaplacement.vector_decode": frozenset({"offsets"}),
    "kubelet.config_derived": frozenset({"exporter"}),
    "updater.policy_name": frozenset({"name"}),
    "sysinfo.hugepage_resource_name": frozenset({"name"}),
    "sysinfo.hugepage_resource_name_derived": frozenset({"name"}),
}
"""Columns that are outcomes in this suite only."""
ALIASES: Final = {"zones_model": "zones"}
"""Columns that stand for another one. These zones come from a description of the publisher, not from a run."""


def recognised(value: Any) -> bool:
    return isinstance(value, Mapping) and any(isinstance(value.get(each), Mapping) for each in SECTIONS)


def rows(found: RecordedValue) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Suite, id and case of every row."""
    whole = found.value
    for section, tables in whole.items():
        for name, table in tables.items() if isinstance(tables, Mapping) and section != "meta" else ():
            suite = f"{section}.{name}"
            if isinstance(table, list) and suite not in DATA_SETS and _is_table(table):
                for place, row in enumerate(table):
                    if not isinstance(row, Mapping):
                        where = f"{found.where}, {suite}[{place}]"
                        raise BadObject(KIND, where, "", f"is {errors.echo(row)}; a case is a JSON object")
                    yield suite, _id(row, place), _case(suite, row, whole)


def _is_table(rows: list[Any]) -> bool:
    objects = [row for row in rows if isinstance(row, Mapping)]
    return bool(objects) and not any("cpus" in row and "distances" in row for row in objects)


def _id(row: Raw, place: int) -> str:
    return row["id"] if isinstance(row.get("id"), str) else str(place + 1)


def _case(suite: str, row: Raw, whole: Raw) -> dict[str, Any]:
    outcome = (OUTCOMES - GIVEN.get(suite, frozenset())) | GAINED.get(suite, frozenset())
    plain = {ALIASES.get(name, name): _resolved(value, whole) for name, value in row.items()}
    return {
        "input": {name: value for name, value in plain.items() if name not in outcome},
        "expect": {name: value for name, value in plain.items() if name in outcome},
        "fixtures": {},
    }


def _resolved(value: Any, whole: Raw) -> Any:
    match value:
        case str() if value.startswith("@"):
            found: Any = whole
            for name in value[1:].split("."):
                found = found.get(name, {})
            return found
        case Mapping():
            return {name: _resolved(each, whole) for name, each in value.items()}
        case list():
            return [_resolved(each, whole) for each in value]
    return value
