from typing import Any

import pytest

from numalign.simulator.apiserver.tables import printercolumns

TREE = {
    "spec": {"size": 3, "list": [{"name": "a", "on": True}, {"name": "b"}], "a.b": "dotted"},
    "status": {"conditions": [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]},
}
FOUND: dict[str, list[Any]] = {
    ".spec.size": [3],
    ".spec.missing.deeper": [],
    ".spec.size.deeper": [],
    ".spec['size']": [3],
    '.spec["a.b"]': ["dotted"],
    r".spec.a\.b": ["dotted"],
    ".spec.list[0].name": ["a"],
    ".spec.list[-1].name": ["b"],
    ".spec.list[7].name": [],
    ".spec.list[-1:].name": ["b"],
    ".spec.list[*].name": ["a", "b"],
    ".status.conditions[?(@.type=='Ready')].status": ["True"],
    '.status.conditions[?(@.type != "Ready")].status': ["False"],
    ".spec.list[?(@.on==true)].name": ["a"],
    ".spec.list[?(@.on)].name": ["a"],
    ".spec.size[0]": [],
    "": [TREE],
}


@pytest.mark.parametrize("path, values", FOUND.items(), ids=FOUND)
def test_values_at_a_path(path: str, values: list[Any]) -> None:
    assert printercolumns.found_values(printercolumns.compiled_path(path), TREE) == values


@pytest.mark.parametrize("path", ["spec", "..name", ".a[", ".a[?(@.b==c)]", ".a[1,2]", ". a"])
def test_a_path_that_no_column_can_have_is_refused(path: str) -> None:
    with pytest.raises(printercolumns.InvalidJSONPath):
        printercolumns.compiled_path(path)
