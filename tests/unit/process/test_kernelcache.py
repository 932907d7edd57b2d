"""Machine code in a read-only folder is loaded; where there is none, the next place is asked."""

import errno
import tempfile
from pathlib import Path
from typing import Any

import pytest

caching = pytest.importorskip("numba.core.caching")

from numalign.process import kernelcache  # noqa: E402 (needs numba)

LOCATOR: Any = kernelcache.ReadableCache


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(caching.config, "CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """As root sees it, too: modes of folders do not stop root, a file system that is mounted read-only does."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)


def kernel() -> int:
    return 1


def found() -> Any:
    return LOCATOR.from_function(kernel, __file__)


def test_a_folder_that_can_be_written_to_is_made(folder: Path) -> None:
    assert found() is not None
    assert len(list(folder.iterdir())) == 1


@pytest.mark.usefixtures("read_only")
def test_a_folder_that_is_read_only_is_used(folder: Path) -> None:
    (folder / LOCATOR.get_suitable_cache_subpath(__file__)).mkdir()
    assert found() is not None


@pytest.mark.usefixtures("read_only")
def test_a_folder_that_can_neither_be_found_nor_made_is_passed_over(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "file").touch()
    monkeypatch.setattr(caching.config, "CACHE_DIR", str(folder / "file"))
    assert found() is None
