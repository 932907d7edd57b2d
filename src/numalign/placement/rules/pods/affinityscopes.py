"""The affinity terms of the pod that is to be placed: which of the pods on nodes they are about.

Both halves of InterPodAffinity ask here. Namespaces that a term chooses by label are resolved to names first, so that
matching needs no look at namespaces any more (kube-scheduler spec 1.13). Equal terms make equal questions to
`podcounts`."""

from __future__ import annotations

from msgspec import Struct

from numalign.api.objects.pod import Pod
from numalign.placement.rules.pods import podterms
from numalign.placement.rules.pods.namespaces import Namespaces
from numalign.placement.rules.pods.podcounts import PodQuery, PodScope
from numalign.placement.rules.pods.podterms import AffinityTerm, Role


class ScopedTerm(Struct, frozen=True):
    key: str
    scope: PodScope
    weight: int = 0

    @property
    def question(self) -> PodQuery:
        return PodQuery(scopes=(self.scope,))


Terms = dict[Role, list[ScopedTerm]]


def of_pod(pod: Pod, namespaces: Namespaces) -> Terms:
    terms: Terms = {role: [] for role in Role}
    for held in podterms.of_pod(pod):
        scope = _scope(held.term, namespaces)
        terms[held.role].append(ScopedTerm(key=held.term.key, scope=scope, weight=held.weight))
    return terms


def _scope(term: AffinityTerm, namespaces: Namespaces) -> PodScope:
    chosen = None
    if not term.namespace_selector.is_empty:
        chosen = term.namespaces | namespaces.matching(term.namespace_selector)
    return PodScope(namespaces=chosen, selector=term.selector)
