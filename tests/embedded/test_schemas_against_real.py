"""The same random objects of a custom resource to our schema and to a real server: what is stored and what is said."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from numalign.simulator.apiserver.schemas import structural
from numalign.simulator.apiserver.schemas.structural import StructuralSchema
from tests.embedded import definitions
from tests.embedded.realserver import RealServer

PATH = "/apis/ex.com/v1/namespaces/default/samples?dryRun=All"
SCHEMA = StructuralSchema(definitions.SAMPLE)
# The first of these is right most of the time, the rest are wrong in their own way.
VALUES: dict[str, list[Any]] = {
    "s": ["abc", "a", "bb", "abbbbbb", 5, ""],
    "i": [4, 0, 3, 11, 2.5, "4", 4.0],
    "x": [2.5, 1, 10, "a", 3],
    "b": [True, "true", 1],
    "e": ["A", "C", 5],
    "ei": [1, 3, "1"],
    "ios": [5, "5", 1.5, True],
    "l": [["a"], [], ["a", "b", "c"], [1], "a", [None], {}],
    "set": [["a", "b"], ["a", "a"], [5]],
    "ml": [[{"name": "a"}, {"name": "b", "v": 1}], [{"name": "a"}, {"name": "a"}], [{"v": 1}], [{"name": 1}]],
    "o": [{"r": "1"}, {}, {"r": "1", "zz": 5}, {"r": None}, {"r": "1", "q": None}],
    "m": [{"a": 1}, {}, {"a": 1, "b": 2, "c": 3}, {"a": "x"}, {"a": 1, "b": None}],
    "n": [None, "x", 5],
    "dt": ["2020-01-01T00:00:00Z", "nope", "2020-01-01", "2020-01-01T00:00:00.5+02:00"],
    "ip": ["1.2.3.4", "1.2.3.400", "::1"],
    "i32": [7, 99999999999, -3],
    "p": [{"any": {"t": 1}}, {}, [], "x"],
    "any": [[1, {"a": None}], "x", {"a": {"b": None}}, None],
    "er": [{"apiVersion": "v1", "kind": "Pod", "x": 1}, {"a": 1}, {"kind": "Pod"}],
    "ao": [{"a": "1"}, {}, {"a": "1", "b": "2"}],
    "oo": [{"a": "1"}, {}, {"a": "1", "b": "2"}],
    "al": [6, 4, 8],
    "no": ["good", "bad"],
    "byte": ["aGk=", "!!", ""],
    "dur": ["5m", "x", "1h30m", "5"],
    "unknown": [1, {"a": 1}],
}


def sample(chance: Random) -> Any:
    spec: dict[str, Any] = {}
    for key in chance.sample(sorted(VALUES), chance.randint(1, 6)):
        good, *bad = VALUES[key]
        spec[key] = good if chance.random() < 0.5 else chance.choice([*bad, None])
    return {"apiVersion": "ex.com/v1", "kind": "Sample", "metadata": {"name": "s"}, "spec": spec}


def theirs(server: RealServer, tree: Any) -> Any:
    code, answer = server.call("POST", PATH, tree)
    if code == 201:
        return answer["spec"]
    return sorted((each["field"], each["reason"], each["message"]) for each in answer["details"]["causes"])


def ours(tree: Any) -> Any:
    stored, causes = structural.admitted(SCHEMA, tree)
    return sorted((each.field, each.reason, each.message) for each in causes) if causes else stored["spec"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_schemas_agree_with_the_real_server(real_server: RealServer, seed: int) -> None:
    chance = Random(seed)
    for tree in [sample(chance) for _ in range(250)]:
        assert ours(tree) == theirs(real_server, tree), tree["spec"]
