"""Which real code is asked: `kubelet@1.36` and the like, as a person writes it."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from numalign.api.errors import BadObject
from numalign.kubelet.versions import Minor
from numalign.lab import binaries, catalogue, toolchain

NEWEST = max(catalogue.ORACLE_MINORS, key=lambda text: int(text.split(".")[1]))


class Source(Struct, frozen=True):
    """A kubelet of one minor, and the lab's binary that speaks for it."""

    minor: Minor
    binary: catalogue.Binary

    def program(self) -> Path:
        """The oracle program, built if it is not there yet."""
        (built,) = binaries.build([self.binary], lambda _: None)
        return built.path

    def ready(self) -> bool:
        return toolchain.found() and binaries.locate(self.binary, toolchain.version_text(toolchain.go())).exists()


def kubelet(text: str) -> Source:
    """Read `kubelet` (the newest that can be asked) or `kubelet@1.36`."""
    name, _, version = text.partition("@")
    known = ", ".join(f"kubelet@{minor}" for minor in catalogue.ORACLE_MINORS)
    if name != "kubelet" or (version or NEWEST) not in catalogue.ORACLE_MINORS:
        raise BadObject("Oracle", text, "against", f"unknown; known are kubelet and {known}")
    minor = version or NEWEST
    (binary,) = catalogue.chosen([f"oracle-kubelet-{minor}"])
    return Source(Minor(*map(int, minor.split("."))), binary)
