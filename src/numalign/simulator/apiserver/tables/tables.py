"""Makes the Table that `kubectl get` prints: column definitions, and one row for each object.

The HTTP layer calls `table` for lists, single objects and watch events if a client asks for `as=Table`. Only the first
event of a watch carries the column definitions (`headers`). Kinds without a layout show name and creation time; custom
resources show the columns of their definition."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, Literal

from numalign.simulator.apiserver.defaults import kinds
from numalign.simulator.apiserver.storage.resources import STORAGECLASSES, Resource
from numalign.simulator.apiserver.tables import cluster, columns, pods, printercolumns, workloads
from numalign.simulator.trees import Tree

Include = Literal["Metadata", "Object", "None"]

POD: Final = ("", "Pod")
Layout = tuple[columns.TableColumn, ...]
LAYOUTS: Final[dict[tuple[str, str], Layout]] = {POD: pods.COLUMNS, **workloads.LAYOUTS, **cluster.LAYOUTS}
PLAIN: Final = (columns.NAME, columns.text("Created At", columns.field("metadata", "creationTimestamp"), "date"))


def table(
    resource: Resource,
    items: Sequence[Tree],
    *,
    now: datetime,
    columns: Sequence[Tree] | None = None,
    headers: bool = True,
    include: Include = "Metadata",
    metadata: Tree | None = None,
) -> Tree:
    """`columns` are the printer columns of a custom resource, `metadata` that of the list; a single object's version is
    used if there is no list."""
    layout = _layout(resource, columns)
    is_pod = (resource.group, resource.kind) == POD
    rows = [_row([column.cell(item, now) for column in layout], item, include, is_pod=is_pod) for item in items]
    if resource == STORAGECLASSES and metadata is not None:
        _mark_default(rows, items)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": _version_of(items) if metadata is None else metadata,
        "columnDefinitions": [column.definition() for column in layout] if headers else None,
        "rows": rows,
    }


def _layout(resource: Resource, definitions: Sequence[Tree] | None) -> Layout:
    if resource.custom or definitions is not None:
        return printercolumns.layout(definitions or ())
    return LAYOUTS.get((resource.group, resource.kind), PLAIN)


def _row(cells: list[Any], item: Tree, include: Include, *, is_pod: bool) -> Tree:
    row: Tree = {"cells": cells}
    conditions = pods.conditions(item) if is_pod else []
    if conditions:
        row["conditions"] = conditions
    row["object"] = _shown(item, include)
    return row


def _shown(item: Tree, include: Include) -> Tree | None:
    if include == "Metadata":
        return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": item["metadata"]}
    return item if include == "Object" else None


def _version_of(items: Sequence[Tree]) -> Tree:
    version = items[0]["metadata"].get("resourceVersion") if len(items) == 1 else None
    return {"resourceVersion": version} if version else {}


def _mark_default(rows: Sequence[Tree], items: Sequence[Tree]) -> None:
    # Only a list shows the default class, because it takes all classes to know it.
    default = kinds.default_class(items)
    for row in rows:
        if default and row["cells"][0] == default:
            row["cells"][0] = f"{default} (default)"
