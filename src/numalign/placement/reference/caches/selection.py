"""Which cache a profile gets, by the plugin's arguments (scheduler plugin spec 10).

The scheduler calls `build` once and gives all its profiles the one cache: the reference has one in each profile, and
they do not know of each other's pods."""

from collections.abc import Collection, Iterable

from numalign.api.nrt.wire import NodeResourceTopology
from numalign.placement import referenceargs
from numalign.placement.reference.caches import podgroups
from numalign.placement.reference.caches.cache import Cache
from numalign.placement.reference.caches.discardreserved import DiscardReserved
from numalign.placement.reference.caches.overreserve import OverReserve
from numalign.placement.reference.caches.passthrough import Passthrough
from numalign.placement.reference.caches.rules import Rules
from numalign.placement.referenceargs import NodeResourceTopologyMatchArgs, PreemptionMode, ResyncScope


def build(
    settings: NodeResourceTopologyMatchArgs, profiles: Collection[str], nrts: Iterable[NodeResourceTopology] = ()
) -> Cache:
    """`nrts`: the reports that are there at the start; `profiles`: the names under which pods are scheduled."""
    if settings.discard_reserved_nodes:
        return DiscardReserved(nrts)
    if (settings.cache_resync_period_seconds or 0) <= 0:
        return Passthrough(nrts)
    return OverReserve(rules(settings, profiles), nrts)


def rules(settings: NodeResourceTopologyMatchArgs, profiles: Collection[str]) -> Rules:
    cache = settings.cache
    return Rules(
        profiles=frozenset(profiles),
        detect=referenceargs.foreign_pods_detect(cache),
        method=referenceargs.resync_method(cache),
        follows_settings=referenceargs.resync_scope(cache) is ResyncScope.ALL,
        is_relevant=podgroups.relevance(referenceargs.informer_mode(cache)),
        keeps_records=referenceargs.preemption_mode(settings) is PreemptionMode.ENABLED,
        period=float(settings.cache_resync_period_seconds or 0),
    )
