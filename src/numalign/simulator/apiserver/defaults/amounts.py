"""Amounts in objects as the server keeps them: one canonical text each.

Everything in this package that meets a quantity asks here. What is no quantity makes the whole body unreadable to the
real server, so it is refused before any rule is looked at."""

from functools import lru_cache
from typing import Any, Final

from numalign.api.decode import quantity
from numalign.api.objects import qos
from numalign.api.objects.pod import ResourceRequirements
from numalign.simulator import trees
from numalign.simulator.apiserver.storage import errors
from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.trees import Tree

GRAMMAR: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


class BadAmount(ValueError):
    """Some amount in the object is no quantity."""


@lru_cache(maxsize=16_384)
def _canonical(text: str) -> str:
    try:
        return str(quantity.parse(text))
    except quantity.QuantityError:
        raise BadAmount(GRAMMAR) from None


def canonical(written: Any) -> str:
    # An unquoted number means its own text; anything else that is no text cannot be meant.
    if isinstance(written, str):
        return _canonical(written)
    if written is None:
        return "0"
    if isinstance(written, bool) or not isinstance(written, int | float):
        raise BadAmount(GRAMMAR)
    return _canonical(str(written))


def settle(holder: Tree, *fields: str) -> None:
    """Writes the amounts under these fields the canonical way."""
    for field in fields:
        amounts = holder.get(field)
        if amounts:
            holder[field] = {name: canonical(written) for name, written in amounts.items()}


def parsed(amounts: Tree | None) -> dict[str, quantity.Quantity]:
    return {name: quantity.parse(written) for name, written in amounts.items()} if amounts else {}


def class_of(resources: Tree | None) -> qos.QoS:
    """The QoS class that these requests and limits alone would have."""
    return _class_of(trees.encoded(resources)) if resources else qos.QoS.BEST_EFFORT


# There are far fewer sizes than containers.
@lru_cache(maxsize=4096)
def _class_of(data: bytes) -> qos.QoS:
    resources = trees.decoded(data)
    wants = ResourceRequirements(parsed(resources.get("requests")), parsed(resources.get("limits")))
    return qos.of_requirements(wants)


def refusal(resource: Resource, problem: BadAmount) -> errors.StatusError:
    return errors.Mistyped(resource, str(problem))
