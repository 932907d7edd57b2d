"""Recorded merges of the topology manager: the providers' hints, the merged hint, and whether it admits the pod."""

from msgspec import Struct

from numalign.kubelet.settings import TopologyPolicy
from numalign.kubelet.topologymanager import policies
from numalign.kubelet.topologymanager.hints import HintList
from numalign.kubelet.topologymanager.merge import HintMap, Rules
from numalign.oracle.kubelet import forms
from numalign.oracle.kubelet.family import CaseOrigin, Family
from numalign.oracle.kubelet.forms import Hint, RecordedHints, Zones


class MergeCase(Struct, frozen=True, kw_only=True):
    id: str
    policy: TopologyPolicy
    prefer_closest: bool
    numa_nodes: Zones
    distances: tuple[tuple[int, ...], ...] | None
    """The distances by zone id; null if closest zones are not preferred."""
    providers: tuple[RecordedHints | None, ...]


class MergeAnswer(MergeCase, frozen=True, kw_only=True):
    best: Hint
    admit: bool


def answer(case: MergeCase, _: CaseOrigin) -> MergeAnswer:
    closest = dict(enumerate(case.distances)) if case.prefer_closest and case.distances else None
    rules = Rules(case.policy, case.numa_nodes, closest)
    merged = policies.merge([_offered(provider) for provider in case.providers], rules)
    return forms.completed(MergeAnswer, case, best=forms.hint(merged.best), admit=merged.admitted is not None)


def _offered(provider: RecordedHints | None) -> HintMap | None:
    if provider is None:
        return None
    return {
        resource: None if hints is None else HintList.of(each.model for each in hints)
        for resource, hints in provider.items()
    }


FAMILY = Family("tm_merge", MergeCase, answer)
