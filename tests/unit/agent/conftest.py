"""Where the sockets of these tests are."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folder() -> Iterator[Path]:
    """With a short name: the path of a unix socket may have 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="numalign-") as name:
        yield Path(name)


@pytest.fixture
def socket(folder: Path) -> Path:
    return folder / "kubelet.sock"
