"""Workloads as a table: CSV text with a line for each kind of pod.

The command line calls `read`. The first line names the columns: `name`, `pods`, `weight`, and resources such as `cpu`,
`memory` or `nvidia.com/gpu`. Each kind is a pod of one container whose limits are its requests, so that kubelets align
it. Whatever cannot be used is a BadObject that names the file, the line and the column."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from numalign.api.decode import quantity
from numalign.api.errors import BadObject, clipped, echo
from numalign.api.objects import requests, resourcenames
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Container, Pod, PodSpec, ResourceList, ResourceRequirements

NAME, PODS, WEIGHT = "name", "pods", "weight"
NEEDED: Final = (NAME, resourcenames.CPU)
MOST_PODS: Final = 1_000_000
MOST_LINES: Final = 10_000
MOST_COLUMNS: Final = 1_000
LONGEST_NUMBER: Final = 20
"""Digits, zeros at the front included."""


class Row(Struct, frozen=True, kw_only=True):
    """One kind of pod."""

    name: str
    pods: int
    weight: int
    pod: Pod


def read(text: str, file: str) -> list[Row]:
    reader = csv.DictReader(io.StringIO(text), strict=True)
    try:
        columns = [each.strip() for each in reader.fieldnames or ()]
        reader.fieldnames = columns
        _check_columns(columns, file)
        found: dict[str, tuple[Row, int]] = {}
        for fields in reader:
            row = _row(_Line(file, reader.line_num, fields))
            if row.name in found:
                why = f"{echo(row.name)} is also the name of line {found[row.name][1]}; names are unique"
                raise BadObject("File", file, f"line {reader.line_num}, name", why)
            found[row.name] = row, reader.line_num
            if len(found) > MOST_LINES:
                raise BadObject(
                    "File", file, f"line {reader.line_num}", f"more than {MOST_LINES:,} kinds; split the file"
                )
    except csv.Error as problem:
        raise BadObject("File", file, f"line {reader.reader.line_num}", f"is not CSV: {problem}") from None
    if not found:
        raise BadObject("File", file, "", "has no line after the names of the columns")
    return [row for row, _ in found.values()]


def _check_columns(columns: list[str], file: str) -> None:
    if len(columns) > MOST_COLUMNS:
        raise BadObject("File", file, "line 1", f"has {len(columns):,} columns; at most {MOST_COLUMNS:,} are read")
    missing = [name for name in NEEDED if name not in columns]
    if missing:
        why = f"the columns {', '.join(missing)} are missing; the first line has to name {', '.join(NEEDED)}"
        raise BadObject("File", file, "line 1", why)
    for column in columns:
        if columns.count(column) > 1:
            raise BadObject("File", file, f"line 1, {clipped(column)}", "is there twice; remove one")
        known = column in (NAME, PODS, WEIGHT, resourcenames.CPU, resourcenames.MEMORY)
        if not known and not resourcenames.is_extended(column) and not resourcenames.is_hugepages(column):
            why = "is neither name, pods nor weight, and no resource; write one like memory or example.com/nic"
            raise BadObject("File", file, f"line 1, {clipped(column)}", why)


class _Line(Struct, frozen=True):
    file: str
    number: int
    fields: Mapping[str | None, object]

    def wrong(self, column: str, why: str) -> BadObject:
        return BadObject("File", self.file, f"line {self.number}, {column}", why)

    def text(self, column: str) -> str:
        found = self.fields.get(column)
        return found.strip() if isinstance(found, str) else ""

    def number_of(self, column: str, default: int) -> int:
        written = self.text(column)
        if not written:
            return default
        if not written.isascii() or not written.isdigit():
            raise self.wrong(column, f"{echo(written)} is not a whole number of 0 to {MOST_PODS:,}")
        if len(written) > LONGEST_NUMBER or int(written) > MOST_PODS:
            raise self.wrong(column, f"{echo(written)} is more than {MOST_PODS:,}")
        return int(written)

    def amounts(self) -> Iterator[tuple[str, quantity.Quantity]]:
        for column in self.fields:
            if column is None:
                raise self.wrong("", "has more fields than the first line has names")
            if column in (NAME, PODS, WEIGHT) or not self.text(column):
                continue
            try:
                amount = quantity.parse(self.text(column))
            except quantity.QuantityError as problem:
                raise self.wrong(column, str(problem)) from None
            if amount < quantity.ZERO:
                raise self.wrong(column, f"{amount} is negative; write zero or more")
            if resourcenames.is_extended(column) and not amount.is_whole:
                raise self.wrong(column, f"{amount} is not a whole number, and {column} cannot be divided")
            if amount > quantity.ZERO:
                yield column, amount


def _row(line: _Line) -> Row:
    name = line.text(NAME)
    if not name:
        raise line.wrong(NAME, "is empty; write a name")
    amounts: ResourceList = dict(line.amounts())
    if resourcenames.CPU not in amounts:
        raise line.wrong(resourcenames.CPU, "is empty or 0; write how many CPUs a pod asks for")
    pods = line.number_of(PODS, 1)
    return Row(name=name, pods=pods, weight=line.number_of(WEIGHT, max(1, pods)), pod=guaranteed(name, amounts))


def guaranteed(name: str, amounts: ResourceList) -> Pod:
    """A pod of one container that asks for these amounts, which are its limits, too."""
    own = ResourceRequirements(requests=amounts, limits=amounts)
    metadata = ObjectMeta(name=name, namespace="default", uid=name)
    return requests.defaulted(Pod(metadata=metadata, spec=PodSpec(containers=(Container(name="main", resources=own),))))
