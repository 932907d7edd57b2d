"""What it means that the row model and a kubelet agree: the words of the property tests about rows."""

from __future__ import annotations

from collections.abc import Iterable

from numalign.api.objects.pod import Pod
from numalign.kubelet import admission
from numalign.kubelet.state import KubeletState
from numalign.placement.columns.holdings import Entry
from numalign.placement.columns.requests import Program
from numalign.placement.columns.resources import CPU
from numalign.placement.rowmodel.evaluate import RowVerdict, Verdict
from numalign.placement.rowmodel.state import RowState
from tests.rows import View, outside

EXPECTED = {Verdict.FITS: "admitted", Verdict.DOES_NOT_FIT: "rejected"}


class Asked:
    """A pod asked of a kubelet: the truth that a verdict is held against."""

    def __init__(self, view: View, state: KubeletState, pod: Pod) -> None:
        self.view = view
        self.pod = pod
        self.program = view.program(pod)
        self.after, self.outcome = admission.align(view.kubelet, state, pod)

    def contradicts(self, verdict: RowVerdict) -> str:
        """What is wrong with the verdict; empty if nothing is."""
        expected = EXPECTED.get(verdict.code)
        if expected is None:
            return ""
        if self.outcome.verdict != expected:
            return f"{verdict.code} but {self.outcome.verdict}: {self.outcome.message}"
        return (self._misaligned(verdict) or self._misplaced(verdict)) if verdict.fits else ""

    def _misaligned(self, verdict: RowVerdict) -> str:
        for container, possible in zip(self.pod.in_admission_order(), verdict.possible, strict=True):
            if not self.view.allows(self.after, self.pod, container.name, possible):
                return f"{container.name} is aligned to {self.after.affinity(self.pod.metadata.uid, container.name)}"
        return ""

    def _misplaced(self, verdict: RowVerdict) -> str:
        held = self.view.held(self.after, self.pod.metadata.uid)
        return "; ".join(outside(held, at_admission(verdict.everything, self.program, self.view), len(self.view.zones)))


def at_admission(entries: Iterable[Entry], program: Program, view: View) -> tuple[Entry, ...]:
    """Pods that are served as a whole get their devices later."""
    if program.budget is None:
        return tuple(entries)
    return tuple(entry for entry in entries if entry.column == CPU or entry.column in view.memory_columns)


def differs(after: RowState, truth: RowState) -> str:
    """Where a row that counts as exact differs from the kubelet's state."""
    wrong = [column for column in after.base if column not in after.memory and after.base[column] != truth.base[column]]
    if wrong and not after.classes:
        return f"columns {wrong}: {after.base} and not {truth.base}"
    if after.cores is not None and CPU in after.base and after.cores != truth.cores:
        return f"cores: {after.cores} and not {truth.cores}"
    return ""
