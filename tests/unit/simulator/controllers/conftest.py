import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def failures(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """A controller that fails goes on, and says so in the log; here none may, unless a test lists what is said."""
    expected: list[str] = []
    yield expected
    errors = [record for record in caplog.get_records("call") if record.levelno >= logging.ERROR]
    assert [record.getMessage() for record in errors] == expected
