"""Files of every sort end in documents, or in one error that names the line."""

import io
import sys
from pathlib import Path

import pytest

from numalign.api.errors import BadObject
from numalign.cli import fileio

LINES_OF_ALIASES = [
    f"{chr(98 + place)}: &{chr(98 + place)} [{', '.join(['*' + chr(97 + place)] * 9)}]" for place in range(15)
]
LINES_OF_MERGES = [line.replace("[", "{<<: [").replace("]", "]}") for line in LINES_OF_ALIASES]

REFUSED = {
    "a list that is not closed": ("a: [1\nb: 2", "line 2, column 2: not YAML: while parsing a flow sequence"),
    "a tab for indentation": ("a:\n\t- b", "line 2, column 1: not YAML: while scanning"),
    "a key twice": ("a: 1\nb: 2\na: 3", 'line 3, column 1: the key "a" is there twice; remove one'),
    "an alias to nothing": ("a: *x", "line 1, column 4: not YAML: found undefined alias"),
    "a list inside itself": ("a: &a [*a]", "line 1, column 4: an alias refers to what it is part of"),
    "lists nested deeply": ("[" * 1_000_000, "line 1, column 101: nested more than 100 levels deep"),
    "mappings nested deeply": ("{a: " * 200, "nested more than 100 levels deep"),
    "aliases that explode": ("\n".join(["a: &a [x, x, x]", *LINES_OF_ALIASES]), "its aliases stand for more than"),
    "merges that explode": ("\n".join(["a: &a {x: y}", *LINES_OF_MERGES]), "its aliases stand for more than"),
    "an object of some program": ("a: !!python/object:os.system x", 'the tag "!!python/object:os.system" is nothing'),
    "a tag that its value is not": ("a: !!int x", "line 1, column 4: not YAML: not a value of type int"),
    "a list as a key": ("? [a]\n: b", "line 1, column 3: not YAML: while constructing a mapping, found unhashable key"),
    "a number without end": ("a: " + "9" * 5000, "line 1, column 4: a number of more than 400 characters"),
    "a base 60 number without end": ("a: 1" + ":59" * 5000, "line 1, column 4: a number of more than 400 characters"),
    "a control character": ("a: \0", "cannot be read as YAML: unacceptable character"),
    "a future version of YAML": ("%YAML 3.0\n---\na", "line 1, column 1: not YAML: found incompatible YAML document"),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "pods.yaml"


@pytest.mark.parametrize("text, why", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_read_is_refused_with_its_place(file: Path, text: str, why: str) -> None:
    file.write_text(text)
    with pytest.raises(BadObject) as refusal:
        fileio.documents(str(file))
    assert why in str(refusal.value)
    assert str(refusal.value).startswith(f"File {file}")


def test_documents_know_their_number_and_line(file: Path) -> None:
    file.write_text("---\n---\na: 1\n---\n# nothing\n---\n\nb: 2\n")
    found = fileio.documents(str(file))
    assert [document.value for document in found] == [{"a": 1}, {"b": 2}]
    assert [document.place for document in found] == [f"{file}, document 2, line 3", f"{file}, document 4, line 8"]


def test_scalars_mean_what_they_mean_to_kubernetes(file: Path) -> None:
    file.write_text("{date: 2026-01-01, equals: =, yes: yes, number: 1e3, hex: 0x10}")
    (document,) = fileio.documents(str(file))
    assert document.value == {"date": "2026-01-01", "equals": "=", True: True, "number": "1e3", "hex": 16}


def test_aliases_of_sensible_size_are_fine(file: Path) -> None:
    file.write_text("a: &a {x: 1}\nb: *a\nc: {<<: *a, y: 2}")
    (document,) = fileio.documents(str(file))
    assert document.value == {"a": {"x": 1}, "b": {"x": 1}, "c": {"x": 1, "y": 2}}


def test_json_is_yaml(file: Path) -> None:
    file.write_bytes(b'\xef\xbb\xbf{"a": [1, null]}')
    assert fileio.documents(str(file))[0].value == {"a": [1, None]}


def test_a_binary_file_is_no_text(file: Path) -> None:
    file.write_bytes(b"\x7fELF\xff\xfe")
    with pytest.raises(BadObject, match="byte 4 is not UTF-8 text"):
        fileio.documents(str(file))


def test_a_file_that_is_too_large_is_not_parsed(file: Path) -> None:
    file.write_bytes(b" " * (fileio.MAX_BYTES + 1))
    with pytest.raises(BadObject, match="larger than 8 MiB; split it"):
        fileio.documents(str(file))


@pytest.mark.parametrize("path", ["missing.yaml", ".", "a\0b", "x" * 5000], ids=["missing", "folder", "nul", "long"])
def test_what_is_no_file_cannot_be_read(path: str) -> None:
    with pytest.raises(BadObject, match="cannot be read: "):
        fileio.documents(path)


def test_a_dash_is_the_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a: 1")))
    assert fileio.documents("-")[0].place == "standard input, document 1, line 1"


def test_a_closed_standard_input_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(BadObject, match="File standard input: cannot be read: it is closed"):
        fileio.documents("-")


@pytest.mark.parametrize("text, count", [("", 0), ("a: 1\n---\nb: 2", 2)], ids=["none", "two"])
def test_where_one_document_is_wanted_others_are_refused(file: Path, text: str, count: int) -> None:
    file.write_text(text)
    with pytest.raises(BadObject, match=f"holds {count} documents, and exactly one is wanted"):
        fileio.only(str(file))
