"""Client libraries of other people, for tests that they work with ours.

They are no dependency of ours (requirements/peers.txt), so they are looked for and not imported outright."""

from __future__ import annotations

import importlib
import os
from importlib.util import find_spec
from typing import Any

import pytest

from tests import conftest


def imported(name: str) -> Any:
    """The module; without it the calling module's tests are skipped, or fail in a pipeline."""
    if find_spec(name.partition(".")[0]) is None and os.environ.get(conftest.IN_PIPELINE) != "true":
        pytest.skip(f"needs {name}: pip install -r requirements/peers.txt", allow_module_level=True)
    return importlib.import_module(name)
