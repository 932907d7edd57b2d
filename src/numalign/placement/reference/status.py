"""The statuses that the plugin returns to the scheduler framework, as data.

`filter` and `victims` return these; the texts are the plugin's own, to the letter (scheduler plugin spec 7.4), because
users and tests look for them. Our own sentences, which name container, resource and zone, are made elsewhere.
"""

from enum import StrEnum
from typing import Final

from msgspec import Struct


class StatusCode(StrEnum):
    SUCCESS = "Success"
    ERROR = "Error"
    UNSCHEDULABLE = "Unschedulable"


class Status(Struct, frozen=True):
    code: StatusCode = StatusCode.SUCCESS
    reasons: tuple[str, ...] = ()

    @property
    def is_success(self) -> bool:
        return self.code is StatusCode.SUCCESS


def unschedulable(reason: str) -> Status:
    return Status(StatusCode.UNSCHEDULABLE, (reason,))


def error(reason: str) -> Status:
    return Status(StatusCode.ERROR, (reason,))


SUCCESS: Final = Status()
NODE_NOT_FOUND: Final = error("node not found")
STALE: Final = unschedulable("invalid node topology data")
POD: Final = unschedulable("cannot align pod")
INIT_CONTAINER: Final = unschedulable("cannot align init container")
SIDECAR: Final = unschedulable("cannot align sidecar container")
CONTAINER: Final = unschedulable("cannot align container")
