"""Image archives: what is made is read again, and what is no archive is told by file and field."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.errors import BadObject
from numalign.lab.containers import images
from numalign.lab.containers.images import Contents

NAME = "localhost/numalign/thing:1"
THING = Contents(name=NAME, entrypoint=("/thing",), programs={"thing": b"\x7fELF"}, links={"bin/other": "../thing"})


def written(folder: Path, content: bytes) -> Path:
    file = folder / "image.tar"
    file.write_bytes(content)
    return file


def with_index(folder: Path, index: object) -> Path:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as made:
        text = index if isinstance(index, bytes) else json.dumps(index).encode()
        entry = tarfile.TarInfo("index.json")
        entry.size = len(text)
        made.addfile(entry, io.BytesIO(text))
    return written(folder, buffer.getvalue())


def test_an_archive_is_the_same_each_time_and_has_its_name(tmp_path: Path) -> None:
    assert images.archive(THING) == images.archive(THING)
    assert images.names(written(tmp_path, images.archive(THING))) == (NAME,)


def test_every_blob_of_an_archive_is_named_by_its_content() -> None:
    with tarfile.open(fileobj=io.BytesIO(images.archive(THING))) as found:
        blobs = {entry.name.rpartition("/")[2]: found.extractfile(entry) for entry in found if "sha256" in entry.name}
        assert len(blobs) == 3
        for digest, content in blobs.items():
            assert content is not None
            assert hashlib.sha256(content.read()).hexdigest() == digest


def test_what_a_layer_holds_can_be_executed() -> None:
    with tarfile.open(fileobj=io.BytesIO(images.archive(THING))) as found:
        read = {entry.name: found.extractfile(entry) for entry in found if "sha256" in entry.name}
        layers = [content.read() for content in read.values() if content is not None]
    layer = next(each for each in layers if not each.startswith(b"{"))
    with tarfile.open(fileobj=io.BytesIO(layer)) as entries:
        held = {entry.name: (entry.mode, entry.linkname) for entry in entries}
    assert held == {"thing": (0o755, ""), "bin/other": (0o644, "../thing")}


@pytest.mark.parametrize(
    "content, words",
    [
        pytest.param(b"", "is no tar file", id="empty"),
        pytest.param(b"not a tar file at all" * 40, "is no tar file", id="text"),
        pytest.param(images.archive(THING)[:700], "unexpected end", id="cut off"),
        pytest.param(images.archive(THING)[: 1 << 10] + b"\0" * 1024, "is missing", id="without an index"),
    ],
)
def test_a_file_that_is_no_archive_is_told_with_what_to_write(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(BadObject, match=words) as told:
        images.names(written(tmp_path, content))
    assert "oci-archive" in str(told.value)


@pytest.mark.parametrize(
    "index, words",
    [
        pytest.param(b"{", "no image index", id="no JSON"),
        pytest.param([], "no image index", id="a list"),
        pytest.param({"manifests": {}}, "no image index", id="manifests are no list"),
        pytest.param({"manifests": [{"annotations": {"a": 1}}]}, "no image index", id="an annotation is a number"),
        pytest.param({"manifests": []}, "lists no image", id="no image"),
    ],
)
def test_an_index_that_is_none_is_told_by_its_field(tmp_path: Path, index: object, words: str) -> None:
    with pytest.raises(BadObject, match=words) as told:
        images.names(with_index(tmp_path, index))
    assert "index.json" in str(told.value)


def test_a_folder_and_a_missing_file_are_told(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.tar"):
        with pytest.raises(BadObject, match="cannot be read"):
            images.names(path)


def test_an_image_whose_name_is_only_a_tag_needs_one(tmp_path: Path) -> None:
    """As buildah writes it."""
    tagged = with_index(tmp_path, {"manifests": [{"annotations": {images.NAMES[1]: "latest"}}]})
    assert images.names(tagged) == ()
    with pytest.raises(BadObject, match="give one"):
        images.wanted_name(tagged, "")
    assert images.wanted_name(tagged, "localhost/numalign:dev") == "localhost/numalign:dev"


def test_of_two_names_the_one_that_is_asked_for_counts(tmp_path: Path) -> None:
    archive = written(tmp_path, images.archive(THING))
    assert images.wanted_name(archive, "") == NAME
    assert images.wanted_name(archive, "registry.example:5000/a/b:v1") == "registry.example:5000/a/b:v1"


SHORT = ["", " ", "thing", "thing:1", "numalign/thing:1", "localhost/thing", "localhost/:1", "localhost/Thing:1"]
ODD = ["--all.x/y:1", "localhost/thing:1\n", "a b.c/d:1", "/x:1", "é.x/y:1", "localhost/thing:-1", "localhost//x:1"]


@pytest.mark.parametrize("name", [*SHORT, *ODD])
def test_a_name_that_is_not_full_is_refused(tmp_path: Path, name: str) -> None:
    """Kubelets would not find it; and a name is passed to a program as an argument."""
    archive = with_index(tmp_path, {"manifests": [{"annotations": {images.NAMES[0]: name}}]})
    assert images.names(archive) == ()
    with pytest.raises(BadObject, match="full name"):
        images.wanted_name(archive, name)


@given(st.text(max_size=40))
def test_no_text_is_taken_for_a_name_that_a_program_takes_for_an_option(text: str) -> None:
    assert images.FULL_NAME.fullmatch(f"-{text}") is None
