"""Row kernels: whether the managers of a node take a pod, in which zones, and how good the node is.

The functions of `hints`, `merge`, `cpupicking`, `allocate`, `scoring`, `singlezone` and `admit` are the only
implementation for numbers. `scalar` runs them as plain Python, `compiled` as machine code, which `machinecode` keeps.
Rows that they do not decide come back as `block.ASK`, for the row model."""

from __future__ import annotations

from importlib.util import find_spec

from numalign.placement.kernels.block import Kernel


def load() -> Kernel | None:
    """The compiled kernel, ready to use; None where numba is missing.

    Loading takes a second, compiling the first time ever about a minute. The caller may run it in a thread."""
    if find_spec("numba") is None:
        return None
    from numalign.placement.kernels import compiled

    compiled.warm()
    return compiled
