"""Label selectors of pods, services and disruption budgets.

`matches` is the only place that applies a selector to labels. A missing selector matches nothing, an empty one
everything. Node selectors have more operators: `nodematching`."""

from collections.abc import Mapping

import msgspec

from numalign.api.decode.structs import Wire


class LabelSelectorRequirement(Wire, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Wire, frozen=True):
    match_labels: dict[str, str] = msgspec.field(default_factory=dict)
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.match_labels and not self.match_expressions


def matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in selector.match_labels.items()):
        return False
    return all(holds(each.operator, each.values, labels.get(each.key)) for each in selector.match_expressions)


def holds(operator: str, values: tuple[str, ...], value: str | None) -> bool:
    """Whether a requirement holds for the value of its label; None: the object does not have the label."""
    match operator:
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    # The API server accepts no other operator in a label selector; one it does not know selects nothing.
    return False
