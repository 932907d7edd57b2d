"""How long containers run, and with which exit code they end.

`podlife` calls a `Workload` for every container start. Scenarios pass their own; users of kubectl annotate
pods. Without annotations, app containers and sidecars run until they are stopped, and init containers end
after one second."""

import math
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from numalign.api import errors
from numalign.api.objects.pod import Container, Pod

RUN_SECONDS: Final = "numalign.io/run-seconds"
INIT_SECONDS: Final = "numalign.io/init-seconds"
EXIT_CODE: Final = "numalign.io/exit-code"
"""Exit code of app containers that end by themselves."""

INIT_DEFAULT: Final = 1.0
CANNOT_RUN: Final = 128


class ContainerBehaviour(Struct, frozen=True):
    """`seconds` None means until stopped. `message` is the error of a container that cannot start."""

    seconds: float | None = None
    exit_code: int = 0
    message: str = ""


Workload = Callable[[Pod, Container, int], ContainerBehaviour]
"""Called with the pod, the container and the number of earlier starts."""


def annotated(pod: Pod, container: Container, attempt: int) -> ContainerBehaviour:
    """The workload that the pod's annotations describe."""
    try:
        if container in pod.spec.init_containers:
            return (
                ContainerBehaviour()
                if container.is_sidecar
                else ContainerBehaviour(_seconds(pod, INIT_SECONDS, INIT_DEFAULT))
            )
        return ContainerBehaviour(_seconds(pod, RUN_SECONDS, None), _exit_code(pod))
    except errors.BadObject as problem:
        return ContainerBehaviour(0.0, CANNOT_RUN, str(problem))


def _seconds(pod: Pod, annotation: str, default: float | None) -> float | None:
    written = pod.metadata.annotations.get(annotation)
    if written is None:
        return default
    try:
        seconds = float(written)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise _bad(pod, annotation, written, "a number of seconds, such as 90")
    return seconds


def _exit_code(pod: Pod) -> int:
    written = pod.metadata.annotations.get(EXIT_CODE, "0")
    if not (written.isascii() and written.isdigit() and len(written) < 4 and int(written) < 256):
        raise _bad(pod, EXIT_CODE, written, "a whole number from 0 to 255")
    return int(written)


def _bad(pod: Pod, annotation: str, written: str, wanted: str) -> errors.BadObject:
    where = f"metadata.annotations[{annotation}]"
    return errors.BadObject("Pod", pod.metadata.full_name, where, f"{errors.echo(written)} is not {wanted}; correct it")
