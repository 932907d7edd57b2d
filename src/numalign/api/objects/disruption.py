"""PodDisruptionBudgets, as far as whoever evicts pods looks at them.

Informers make these through `decode`. Preemption respects budgets where it can: it prefers victims that no budget
speaks for, but evicts others if there is no other way.
"""

import msgspec

from numalign.api.decode.structs import Int32, Wire
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.selectors import LabelSelector


class PodDisruptionBudgetSpec(Wire, frozen=True):
    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(Wire, frozen=True):
    disruptions_allowed: Int32 = 0
    disrupted_pods: dict[str, str] = msgspec.field(default_factory=dict)
    """By name, pods whose eviction the API server has granted and the controller has not seen yet."""


class PodDisruptionBudget(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
