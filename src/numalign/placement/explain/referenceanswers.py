"""What the reference flavour's nodes say to one pod, as reasons.

`explain` asks row by row. The plugin names neither container nor resource, so its reasons hold what its status tells
and no more; node totals are looked at before, as they are when a pod is placed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from numalign.api.objects.pod import Pod
from numalign.kubelet.demand import Role
from numalign.placement.columns import fit
from numalign.placement.columns.columns import Columns
from numalign.placement.columns.shapes import Shape
from numalign.placement.decisions import Code
from numalign.placement.explain import rowreasons
from numalign.placement.explain.reasons import NodeCause, Reason
from numalign.placement.reference import demand, status
from numalign.placement.reference.flavour import ReferenceFlavour
from numalign.placement.reference.status import Status
from numalign.placement.reports.nodefacts import Assumption

NOT_CERTAIN: Final = Reason(code=Code.NOT_CERTAIN, cause=NodeCause.PLUGIN)
REASONS: Final[Mapping[Status, Reason]] = {
    status.POD: Reason(code=Code.DOES_NOT_FIT, cause=NodeCause.PLUGIN, scope="pod"),
    status.INIT_CONTAINER: Reason(code=Code.DOES_NOT_FIT, cause=NodeCause.PLUGIN, scope="container", role=Role.INIT),
    status.SIDECAR: Reason(code=Code.DOES_NOT_FIT, cause=NodeCause.PLUGIN, scope="container", role=Role.SIDECAR),
    status.CONTAINER: Reason(code=Code.DOES_NOT_FIT, cause=NodeCause.PLUGIN, scope="container", role=Role.APP),
}
"""Whatever else it says is about reports that it does not trust."""


class ReferenceAnswers:
    """One pod held against every node."""

    def __init__(self, flavour: ReferenceFlavour, pod: Pod, shape: Shape, columns: Columns) -> None:
        self._flavour = flavour
        self._columns = columns
        self._wanted = demand.of(pod)
        self._totals = fit.totals(shape, columns)

    def reason(self, row: int) -> Reason | None:
        if not fit.fits_row(self._columns, row, self._totals):
            return rowreasons.of_totals(self._columns, row, self._totals)
        found = self._flavour.status(self._wanted, self._columns.names[row])
        return None if found.is_success else REASONS.get(found, NOT_CERTAIN)

    def warning(self, row: int) -> Reason | None:
        """The plugin knows no wishes."""
        return None

    def assumptions(self, row: int) -> frozenset[Assumption]:
        """Nor does it say what it supposes."""
        return frozenset()
