"""What requests and limits must keep to: known names, sensible amounts, and requests within limits.

`podchecks` asks for every container. Hugepages and extended resources cannot be promised twice, so what is asked for
must be exactly the limit."""

from functools import lru_cache
from typing import Final

from numalign.api.decode import quantity
from numalign.api.decode.quantity import Quantity
from numalign.api.objects import resourcenames
from numalign.simulator import trees
from numalign.simulator.apiserver.defaults import amounts
from numalign.simulator.apiserver.storage import labelsyntax
from numalign.simulator.apiserver.storage.errors import Cause
from numalign.simulator.apiserver.validation import rules
from numalign.simulator.trees import Tree

STANDARD: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
# Names that are known, but not for a container.
STANDARD_ELSEWHERE: Final = frozenset({"storage", "pods", "requests.cpu", "requests.memory", "limits.cpu"})
UNQUALIFIED: Final = "must be a standard resource type or fully qualified"
NOT_FOR_CONTAINERS: Final = "must be a standard resource for containers"
LIMIT_MISSING: Final = "Limit must be set for non overcommitable resources"
HUGEPAGES_ALONE: Final = "HugePages require cpu or memory"
OF_WHOLE_PODS: Final = ("cpu", "hugepages-", "memory")


def errors(resources: Tree, path: str) -> tuple[Cause, ...]:
    """Of one container."""
    return _errors(trees.encoded(resources), path)


# There are far fewer sizes than containers.
@lru_cache(maxsize=4096)
def _errors(data: bytes, path: str) -> tuple[Cause, ...]:
    resources = trees.decoded(data)
    limits, requests = amounts.parsed(resources.get("limits")), amounts.parsed(resources.get("requests"))
    found = list[Cause]()
    for name, amount in sorted(limits.items()):
        found += _amount(name, amount, f"{path}.limits[{name}]")
    for name, amount in sorted(requests.items()):
        found += _amount(name, amount, f"{path}.requests[{name}]") + _within(name, amount, limits, path)
    names = limits.keys() | requests.keys()
    if any(map(resourcenames.is_hugepages, names)) and not names & {"cpu", "memory"}:
        found.append(rules.forbidden(path, HUGEPAGES_ALONE))
    return tuple(found)


def _amount(name: str, amount: Quantity, path: str) -> list[Cause]:
    found = [rules.invalid(path, name, problem) for problem in name_problems(name)]
    if amount.nanos < 0:
        found.append(rules.invalid(path, str(amount), rules.NOT_NEGATIVE))
    if resourcenames.is_hugepages(name):
        found += _pages(name, amount, path)
    elif not amount.is_whole and resourcenames.is_extended(name):
        found.append(rules.invalid(path, str(amount), "must be an integer"))
    return found


def _pages(name: str, amount: Quantity, path: str) -> list[Cause]:
    try:
        size = quantity.parse(name.removeprefix(resourcenames.HUGEPAGES_PREFIX)).value
    except quantity.QuantityError:
        size = 0
    if size > 0 and amount.nanos >= 0 and amount.value % size == 0:
        return []
    return [rules.invalid(path, str(amount), f"{amount} is not positive integer multiple of {name}")]


def _within(name: str, amount: Quantity, limits: dict[str, Quantity], path: str) -> list[Cause]:
    limit = limits.get(name)
    exact = name not in STANDARD and (resourcenames.is_hugepages(name) or resourcenames.is_extended(name))
    if limit is None:
        return [rules.required(f"{path}.limits", LIMIT_MISSING)] if exact else []
    if exact and amount != limit:
        why = f"must be equal to {name} limit of {limit}"
    elif amount > limit:
        why = f"must be less than or equal to {name} limit of {limit}"
    else:
        return []
    return [rules.invalid(f"{path}.requests", str(amount), why)]


@lru_cache(maxsize=1024)
def name_problems(name: str) -> tuple[str, ...]:
    """Of a resource's name in a container."""
    if name in STANDARD or name.startswith(resourcenames.HUGEPAGES_PREFIX):
        return ()
    problems = tuple(labelsyntax.key_problems(name))
    if problems or "/" not in name:
        unknown = () if problems or name in STANDARD_ELSEWHERE else (UNQUALIFIED,)
        return (*problems, *unknown, NOT_FOR_CONTAINERS)
    return ()


def whole_pod_errors(spec: Tree) -> list[Cause]:
    """Of `spec.resources`: only a few resources, and not less than the containers ask for together."""
    whole, found = spec["resources"], list[Cause]()
    for field in ("limits", "requests"):
        for name in sorted(whole.get(field) or {}):
            if not resourcenames.is_pod_level(name):
                found.append(rules.unsupported(f"spec.resources.{field}[{name}]", name, OF_WHOLE_PODS))
    return found or _aggregate_errors(spec)


def _aggregate_errors(spec: Tree) -> list[Cause]:
    asked, found = dict[str, Quantity](), list[Cause]()
    for container in spec.get("containers") or ():
        for name, amount in amounts.parsed((container.get("resources") or {}).get("requests")).items():
            asked[name] = asked.get(name, quantity.ZERO) + amount
    for name, amount in amounts.parsed(spec["resources"].get("requests")).items():
        if name in asked and amount < asked[name]:
            why = f"must be greater than or equal to aggregate container requests of {asked[name]}"
            found.append(rules.invalid(f"spec.resources.requests[{name}]", str(amount), why))
    return found
