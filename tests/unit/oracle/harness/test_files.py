from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from numalign.api.errors import BadObject
from numalign.oracle.harness import files

TWO = b'{"id": "a"}\n\n{"id": "b"}\n'

FORMS: dict[str, tuple[bytes, list[str]]] = {
    "one case per line": (TWO, ["line 1", "line 3"]),
    "lines that end as on Windows": (TWO.replace(b"\n", b"\r\n"), ["line 1", "line 3"]),
    "no line break at the end": (TWO.strip(), ["line 1", "line 3"]),
    "a list over several lines": (json.dumps([{"id": "a"}, {"id": "b"}], indent=2).encode(), ["case 1", "case 2"]),
    "a list on one line": (b'[{"id": "a"}, {"id": "b"}]', ["case 1", "case 2"]),
}
COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {"plain": bytes, "gzip": gzip.compress, "xz": lzma.compress}

UNREADABLE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty; give a file with recorded cases"),
    "blank": (b" \n\n", "is empty; give a file with recorded cases"),
    "not JSON": (b"# Vectors\n", "line 1: is not JSON"),
    "binary": (b"\x28\xb5\x2f\xfd\xff", "line 1: is not JSON"),
    "not text": (b'{"a": "\xff"}', "line 1: is neither JSON text nor compressed with gzip or xz"),
    "a line cut short": (TWO + b'{"id": "c', "line 4: is not JSON (Input data was truncated)"),
    "the first line cut short": (b'{"id": "c\n' + TWO, "line 1: is not JSON"),
    "the only line cut short": (b'{"id": "c', "line 1: is not JSON"),
    "a key twice": (b'{"id": "a", "admit": true, "admit": false}', "admit: is there twice"),
    "a key twice, deep inside": (TWO + b'{"id": "c", "x": [{"a": 1, "a": 1}]}', "line 4, a: is there twice"),
    "nested without end": (b"[" * 100_000, "is nested too deeply"),
    "gzip cut short": (gzip.compress(TWO)[:-9], "cannot be decompressed"),
    "xz cut short": (lzma.compress(TWO)[:-9], "cannot be decompressed"),
    "gzip damaged": (gzip.compress(TWO)[:12] + b"damage" + gzip.compress(TWO)[18:], "cannot be decompressed"),
}


@pytest.mark.parametrize("compress", COMPRESSIONS.values(), ids=COMPRESSIONS)
@pytest.mark.parametrize("text, places", FORMS.values(), ids=FORMS)
def test_every_value_is_found_with_its_place(
    tmp_path: Path, text: bytes, places: list[str], compress: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "any.name"
    path.write_bytes(compress(text))
    found = [(each.where, each.value["id"]) for each in files.values(path)]
    assert found == [(f"{path}, {place}", name) for place, name in zip(places, "ab", strict=True)]


def test_a_document_may_be_a_single_case(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text('\n{\n  "id": "a"\n}')
    (found,) = files.values(path)
    assert (found.where, found.value, found.recorded) == (f"{path}, line 2", {"id": "a"}, b'{"id":"a"}')


@pytest.mark.parametrize("text, complaint", UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_is_named(tmp_path: Path, text: bytes, complaint: str) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_bytes(text)
    with pytest.raises(BadObject) as bad:
        list(files.values(path))
    assert str(bad.value).startswith(f"Recording {path}")
    assert complaint in str(bad.value)


@pytest.mark.parametrize("name, complaint", [("missing", "No such file"), ("", "Is a directory")])
def test_what_is_not_a_file_is_named(tmp_path: Path, name: str, complaint: str) -> None:
    with pytest.raises(BadObject, match=complaint):
        files.values(tmp_path / name)


def test_an_escaped_colon_is_no_second_key(tmp_path: Path) -> None:
    path = tmp_path / "colon.json"
    path.write_text('{"id": "a\\u003ab"}')
    (found,) = files.values(path)
    assert found.value == {"id": "a:b"}
