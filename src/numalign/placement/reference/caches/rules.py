"""The settings of the over-reserve cache as they take effect.

`selection` makes them from the plugin's arguments, the oracle from a recorded scenario, and nothing reads the
arguments after that."""

from collections.abc import Collection

from msgspec import Struct

from numalign.placement.reference.caches import podgroups, repairs
from numalign.placement.reference.caches.podgroups import Relevance
from numalign.placement.reference.caches.repairs import Repair
from numalign.placement.referenceargs import ForeignPodsDetect, InformerMode, ResyncMethod


class Rules(Struct, frozen=True, kw_only=True):
    profiles: Collection[str] = ()
    """The scheduler names whose pods are not foreign, because this cache sees their decisions."""
    detect: ForeignPodsDetect = ForeignPodsDetect.ALL
    method: ResyncMethod = ResyncMethod.AUTODETECT
    follows_settings: bool = True
    """Resync scope All: a node whose Topology Manager settings change is refreshed at once."""
    is_relevant: Relevance = podgroups.relevance(InformerMode.DEDICATED)
    keeps_records: bool = False
    """Preemption needs to know which pods a report spoke of."""
    period: float = 5.0
    """Seconds from the end of one round to the next."""
    repairs: frozenset[Repair] = repairs.ALL
