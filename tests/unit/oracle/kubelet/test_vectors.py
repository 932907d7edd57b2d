from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from numalign.api.errors import BadObject
from numalign.oracle.kubelet import vectors
from tests.unit.oracle import small

STEP_WITHOUT_AFFINITY = {**small.CPU, "steps": [{"container": "a"}]}
ODD_ZONE = {**small.MERGE, "numa_nodes": [0, 64]}

UNUSABLE: dict[str, tuple[Any, str]] = {
    "no object": (7, "line 2: is 7; a case is a JSON object"),
    "no family": ({"id": "x", "name": "y"}, "line 2: is a case of no known family (tm_merge, cpu_static"),
    "no providers": (
        {key: value for key, value in small.MERGE.items() if key != "providers"},
        "line 2, providers: is missing; the case cannot be replayed without it",
    ),
    "no id": ({key: value for key, value in small.MERGE.items() if key != "id"}, "line 2, id: is missing"),
    "a field missing deep inside": (STEP_WITHOUT_AFFINITY, "line 2, steps[0].affinity: is missing"),
    "a policy that is none": ({**small.MERGE, "policy": "strict"}, "line 2, policy: Invalid enum value 'strict'"),
    "another type": ({**small.MERGE, "prefer_closest": "no"}, "line 2, prefer_closest: Expected bool, got str"),
    "a zone beyond the mask": (ODD_ZONE, "line 2, numa_nodes[1]: Expected int <= 63"),
    "a machine that is not in the table": (
        {**small.CPU, "topology": "five"},
        'line 2, topology: "five" is not a machine in topologies.json',
    ),
}

BAD_TABLES: dict[str, tuple[str, str]] = {
    "cut short": ("[", "topologies.json: Input data was truncated"),
    "another shape": ('{"four": 4}', "topologies.json: Expected array, got object"),
    "an unknown field": (json.dumps([{**small.FOUR, "smt": 2}]), "Object contains unknown field smt"),
    "a missing field": ('[{"name": "four"}]', "[0].num_cpus: is missing"),
}


@pytest.mark.parametrize("case, complaint", UNUSABLE.values(), ids=UNUSABLE)
def test_a_case_that_cannot_be_replayed_is_named_with_its_field(tmp_path: Path, case: Any, complaint: str) -> None:
    path = small.with_table(small.lines(tmp_path / "cases.jsonl", small.MERGE, case))
    with pytest.raises(BadObject) as bad:
        vectors.load([path])
    assert str(bad.value).startswith(f"Recording {path}, {complaint}")


def test_a_file_without_cases_is_named(tmp_path: Path) -> None:
    (tmp_path / "none.json").write_text("[]")
    with pytest.raises(BadObject, match="holds no case"):
        vectors.load([tmp_path / "none.json"])


def test_a_missing_table_is_missed_only_by_cases_that_need_it(tmp_path: Path) -> None:
    merge = small.lines(tmp_path / "merge.jsonl", small.MERGE)
    cpu = small.lines(tmp_path / "cpu.jsonl", small.CPU)
    assert len(vectors.load([merge])) == 1
    with pytest.raises(BadObject, match=r"topologies\.json: is missing; the cases beside it name machines"):
        vectors.load([merge, cpu])


@pytest.mark.parametrize(
    "name, compress", [("topologies.json.gz", gzip.compress), ("topologies.json.xz", lzma.compress)]
)
def test_the_table_may_be_compressed(tmp_path: Path, name: str, compress: Any) -> None:
    (tmp_path / name).write_bytes(compress(json.dumps([small.FOUR]).encode()))
    (vector,) = vectors.load([small.lines(tmp_path / "cpu.jsonl", small.CPU)])
    assert vector.origin.topologies["four"].num_cpus == 4


@pytest.mark.parametrize("table, complaint", BAD_TABLES.values(), ids=BAD_TABLES)
def test_a_table_that_cannot_be_used_is_named(tmp_path: Path, table: str, complaint: str) -> None:
    (tmp_path / "topologies.json").write_text(table)
    with pytest.raises(BadObject) as bad:
        vectors.load([small.lines(tmp_path / "cpu.jsonl", small.CPU)])
    assert complaint in str(bad.value)


def test_the_same_case_counts_once_however_it_is_written(tmp_path: Path) -> None:
    first = small.lines(tmp_path / "first.jsonl", small.MERGE, small.MERGE)
    other = tmp_path / "other.json"
    other.write_text(json.dumps(dict(reversed(small.MERGE.items())), indent=1))
    assert [vector.where for vector in vectors.load([first, first, other])] == [f"{first}, line 1"]


def test_another_content_under_the_same_id_is_another_case(tmp_path: Path) -> None:
    path = small.lines(tmp_path / "cases.jsonl", small.MERGE, {**small.MERGE, "admit": False})
    assert len(vectors.load([path])) == 2
