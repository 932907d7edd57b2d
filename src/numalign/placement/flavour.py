"""The interface of a flavour: the rules by which the engine decides whether a node takes a pod.

`engine` holds one flavour and hands facts and pods to it: `exact` predicts the kubelets, `reference.flavour` repeats
NodeResourceTopologyMatch. The engine and its callers never ask which one it is; explanations and dumps, which read
what only one flavour keeps, say by `either` what they do for each."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from numalign.api.objects.pod import Pod
from numalign.placement.columns.shapes import Shape
from numalign.placement.decisions import Codes, Decision, Statistics, Wake
from numalign.placement.facts import Fact
from numalign.placement.kernels.block import Kernel
from numalign.placement.verdicts.verdicts import VerdictTable

if TYPE_CHECKING:
    from numalign.placement.exact import ExactFlavour
    from numalign.placement.reference.flavour import ReferenceFlavour

T = TypeVar("T")


class Flavour(Protocol):
    """Called by the engine, from one task."""

    @property
    def kernel(self) -> Kernel | None:
        """The kernel that evaluates rows; None: the flavour uses none."""
        ...

    def warm(self) -> bool:
        """Loads the compiled kernel; False if numba or the kernel is missing."""
        ...

    def apply(self, fact: Fact) -> list[Wake]: ...

    def charges(self, uid: str) -> bool:
        """Whether a pod that is gone may still run."""
        ...

    def shapes_in_use(self) -> set[int]: ...

    def retain_shapes(self, used: Container[int]) -> None: ...

    def survey(self, shape: Shape, rows: NDArray[np.intp] | None = None) -> Codes:
        """A score or a code for every row; `rows`: those that count."""
        ...

    def follow(self, shape: Shape) -> VerdictTable | None:
        """The shape's answers, kept from pod to pod; None: the flavour keeps none."""
        ...

    def place(self, pod: Pod, shape: Shape, row: int) -> Decision | None: ...

    def certainty(self, code: int, *, aligned: bool) -> int:
        """A `decisions.Certainty`: how certain it is that a row with this score admits the pod; `aligned`: kubelets pin
        something of the pod."""
        ...

    @property
    def unreported(self) -> int | None:
        """The score of rows without a report, and of no other row; None: there is none."""
        ...

    def lacks_report(self, node: str) -> bool:
        """Whether decisions about the node lack zones because it has no usable report. A flavour that takes such nodes
        for what they are says no."""
        ...

    def kubelet_is_away(self, node: str) -> bool:
        """Whether the node's report says that its kubelet does not answer. A flavour that ignores that says no."""
        ...

    def waits_for_report(self, code: int) -> bool:
        """Whether a row that refuses a pod by this code may accept it after its next report."""
        ...

    def statistics(self) -> Statistics: ...

    def refresh(self) -> None:
        """Bring the columns up to date."""
        ...

    def either(self, exact: Callable[[ExactFlavour], T], reference: Callable[[ReferenceFlavour], T]) -> T:
        """Calls the function for this flavour."""
        ...
