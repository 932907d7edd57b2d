"""Tables of everything that a real API server showed, then the details that its rows do not tell."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from numalign.simulator.apiserver.storage import resources
from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.apiserver.tables import tables
from tests.unit.simulator.apiserver.http import recorded

RECORDED = {"/".join(filter(None, each["resource"])): each for each in recorded.load("tables")}
PODS = RECORDED["v1/pods"]
WIDGETS = Resource("demo.example.com", "v1", "widgets", "Widget", namespaced=True, custom=True)
KNOWN = {(each.group, each.version, each.plural): each for each in (*resources.BUILT_IN, WIDGETS)}


def shown(case: dict[str, Any], **options: Any) -> dict[str, Any]:
    resource = KNOWN[tuple(case["resource"])]
    options = {"metadata": {}, "columns": case.get("printer_columns")} | options
    return tables.table(resource, case["items"], now=datetime.fromisoformat(case["now"]), **options)


def tolerated(case: dict[str, Any]) -> list[list[Any]]:
    """The recording took a moment: ages may be a second younger."""
    earlier = datetime.fromisoformat(case["now"]) - timedelta(seconds=1)
    return [row["cells"] for row in shown(case | {"now": earlier.isoformat()})["rows"]]


@pytest.mark.parametrize("case", RECORDED.values(), ids=RECORDED)
def test_columns_are_those_of_the_real_server(case: dict[str, Any]) -> None:
    definitions = shown(case)["columnDefinitions"]
    assert [[each[key] for key in ("name", "type", "format", "priority")] for each in definitions] == case["columns"]


@pytest.mark.parametrize("case", RECORDED.values(), ids=RECORDED)
def test_rows_are_those_of_the_real_server(case: dict[str, Any]) -> None:
    rows = [row["cells"] for row in shown(case)["rows"]]
    for row, other, wanted in zip(rows, tolerated(case), case["rows"], strict=True):
        assert wanted == [cell if cell == real else late for cell, late, real in zip(row, other, wanted, strict=True)]


def test_ended_pods_are_marked_in_their_rows() -> None:
    assert [row.get("conditions") for row in shown(PODS)["rows"]] == PODS["conditions"]


def test_every_status_word_that_users_know_was_recorded() -> None:
    words = {row[2] for row in PODS["rows"]}
    assert words >= {"Completed", "Error", "CrashLoopBackOff", "Init:0/1", "Terminating", "TopologyAffinityError"}
    assert words >= {"Unknown", "SchedulingGated", "Init:Error", "OOMKilled", "NotReady", "ContainerCreating"}


def test_a_later_watch_event_has_no_columns() -> None:
    assert shown(PODS, headers=False)["columnDefinitions"] is None


INCLUDED = {"Metadata": {"kind", "apiVersion", "metadata"}, "Object": {"kind", "apiVersion", "metadata", "spec"}}


@pytest.mark.parametrize("include, keys", INCLUDED.items(), ids=INCLUDED)
def test_a_row_carries_as_much_of_the_object_as_is_asked(include: str, keys: set[str]) -> None:
    items = [{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}, "spec": {}}]
    rows = shown(PODS | {"items": items}, include=include)["rows"]
    assert set(rows[0]["object"]) == keys


def test_a_row_can_come_without_the_object() -> None:
    assert {str(row["object"]) for row in shown(PODS, include="None")["rows"]} == {"None"}


def test_one_object_alone_lends_the_table_its_version() -> None:
    items = [{"metadata": {"name": "a", "resourceVersion": "7"}}]
    assert shown(PODS | {"items": items}, metadata=None)["metadata"] == {"resourceVersion": "7"}


def test_a_custom_resource_without_columns_shows_its_age() -> None:
    case = RECORDED["demo.example.com/v1/widgets"] | {"printer_columns": None}
    assert [each["name"] for each in shown(case)["columnDefinitions"]] == ["Name", "Age"]


def test_one_storage_class_alone_is_not_marked_as_default() -> None:
    case = RECORDED["storage.k8s.io/v1/storageclasses"]
    assert case["rows"][0][0] == "fast (default)"
    assert shown(case, metadata=None)["rows"][0]["cells"][0] == "fast"


EMPTY = [each for each in resources.BUILT_IN if "list" in each.verbs]


@pytest.mark.parametrize("resource", EMPTY, ids=lambda each: each.qualified)
def test_an_object_with_nothing_but_a_name_has_a_row(resource: Resource) -> None:
    table = tables.table(resource, [{"metadata": {"name": "bare"}}], now=datetime.fromisoformat(PODS["now"]))
    assert len(table["rows"][0]["cells"]) == len(table["columnDefinitions"])
