"""The checks that all kinds share: names, choices, counts, immutable fields, label maps and selectors.

The other modules of this package are made of these. The sentences are those of the real server, because people search
for them."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

from numalign.simulator.apiserver.schemas import fielderrors
from numalign.simulator.apiserver.storage.errors import StatusCause
from numalign.simulator.apiserver.storage.names import label_value_problems, qualified_name_problems
from numalign.simulator.trees import Tree

PERCENT: Final = re.compile(r"[0-9]+%")
PERCENT_RULE: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)
NOT_NEGATIVE: Final = "must be greater than or equal to 0"
IMMUTABLE: Final = "field is immutable"
invalid, required = fielderrors.invalid, fielderrors.required
forbidden, unsupported = fielderrors.forbidden, fielderrors.unsupported
duplicate, missing = fielderrors.duplicate, fielderrors.missing

NameRule = Callable[[str], list[str]]
NODE_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
VALUED: Final = ("In", "NotIn")
BARE: Final = ("Exists", "DoesNotExist")
COMPARING: Final = ("Gt", "Lt")
NO_OPERATOR: Final = "not a valid selector operator"
NO_VALUES: Final = "must be specified when `operator` is 'In' or 'NotIn'"
TOO_MANY: Final = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
ONE_VALUE: Final = "must be specified single value when `operator` is 'Lt' or 'Gt'"


def name_errors(path: str, name: str, rule: NameRule) -> list[StatusCause]:
    return [invalid(path, name, problem) for problem in rule(name)]


def required_name(path: str, name: str | None, rule: NameRule) -> list[StatusCause]:
    return name_errors(path, name, rule) if name else [required(path)]


def one_of(path: str, value: Any, known: Iterable[str]) -> list[StatusCause]:
    """The value must be one of a few texts, or empty."""
    return [] if not value or value in known else [unsupported(path, value, known)]


def not_negative(holder: Tree, *fields: str, path: str = "spec") -> list[StatusCause]:
    found = []
    for field in fields:
        value = holder.get(field)
        if value is not None and value < 0:
            found.append(invalid(f"{path}.{field}" if path else field, value, NOT_NEGATIVE))
    return found


def port_number(path: str, number: int) -> list[StatusCause]:
    return [] if 1 <= number <= 65535 else [invalid(path, number, "must be between 1 and 65535, inclusive")]


def int_or_percent(path: str, value: int | str | None, *, at_most_all: bool = False) -> list[StatusCause]:
    """A number, or a percentage."""
    if value is None:
        return []
    if isinstance(value, int):
        return [invalid(path, value, NOT_NEGATIVE)] if value < 0 else []
    if not PERCENT.fullmatch(value):
        return [invalid(path, value, PERCENT_RULE)]
    return [invalid(path, value, "must not be greater than 100%")] if at_most_all and int(value[:-1]) > 100 else []


def label_map(path: str, labels: Tree | None) -> list[StatusCause]:
    found = []
    for key, value in (labels or {}).items():
        if not _is_label(key, value):
            found += name_errors(path, key, qualified_name_problems)
            found += name_errors(path, value, label_value_problems)
    return found


@lru_cache(maxsize=4096)
def _is_label(key: str, value: str) -> bool:
    return not qualified_name_problems(key) and not label_value_problems(value)


def unchanged(path: str, new: Any, old: Any, shown: Any = ...) -> list[StatusCause]:
    """The field must not change; the real server does not show some values in the message."""
    return [] if new == old else [invalid(path, new if shown is ... else shown, IMMUTABLE)]


def label_selector(selector: Tree, path: str) -> list[StatusCause]:
    found = label_map(f"{path}.matchLabels", selector.get("matchLabels"))
    for index, clause in enumerate(selector.get("matchExpressions") or ()):
        found += _clause(clause, f"{path}.matchExpressions[{index}]", comparing=False)
    return found


def affinity(tree: Tree, path: str) -> Iterator[StatusCause]:
    wanted = (tree.get("nodeAffinity") or {}).get(NODE_REQUIRED)
    if wanted is not None:
        here = f"{path}.nodeAffinity.{NODE_REQUIRED}.nodeSelectorTerms"
        terms = wanted.get("nodeSelectorTerms") or ()
        if not terms:
            yield required(here, "must have at least one node selector term")
        for index, term in enumerate(terms):
            for place, clause in enumerate(term.get("matchExpressions") or ()):
                yield from _clause(clause, f"{here}[{index}].matchExpressions[{place}]", comparing=True)


def _clause(clause: Tree, path: str, *, comparing: bool) -> Iterator[StatusCause]:
    operator, values = clause.get("operator", ""), clause.get("values") or []
    if operator in VALUED and not values:
        yield required(f"{path}.values", NO_VALUES)
    elif operator in BARE and values:
        yield forbidden(f"{path}.values", TOO_MANY)
    elif comparing and operator in COMPARING and len(values) != 1:
        yield required(f"{path}.values", ONE_VALUE)
    elif operator not in (*VALUED, *BARE, *(COMPARING if comparing else ())):
        yield invalid(f"{path}.operator", operator, NO_OPERATOR)
    yield from name_errors(f"{path}.key", clause.get("key", ""), qualified_name_problems)
