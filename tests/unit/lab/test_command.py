"""The Go command that all oracle programs share has tests of its own; here they are run."""

import subprocess

import pytest

from numalign.lab import build
from tests import conftest


@pytest.mark.built
def test_the_command_keeps_its_promises() -> None:
    conftest.require(build.found(), "Go, to test the command around the oracles")
    tested = subprocess.run(
        [build.go(), "test", "./..."],
        cwd=build.SOURCES / "oracle",
        env=build.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr
