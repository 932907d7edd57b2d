"""The Go command that all oracle programs share has tests of its own; here they are run."""

import subprocess

from numalign.lab import catalogue, toolchain
from tests import conftest


def test_the_command_keeps_its_promises() -> None:
    conftest.require(toolchain.found(), "Go, to test the command around the oracles")
    tested = subprocess.run(
        [toolchain.go(), "test", "./..."],
        cwd=catalogue.SOURCES / "oracle",
        env=toolchain.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr
