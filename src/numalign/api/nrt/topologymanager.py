"""The Topology Manager's settings in a topology report: policy, scope, and the maximum number of zones.

`normalise` calls `read` and `write`. Publishers use three top-level attributes; older ones a single token in
`topologyPolicies`, which an attribute overrides field by field (scheduler plugin spec 3). Of repeated attributes the
last valid one counts, because the reference plugin reads them so."""

import re
from collections.abc import Callable, Sequence
from typing import Final, Literal, TypeVar, get_args

from msgspec import Struct

from numalign.api import errors
from numalign.api.attributes.repairs import Guess, GuessCode
from numalign.api.nrt.wire import Attribute

Policy = Literal["none", "best-effort", "restricted", "single-numa-node"]
Scope = Literal["container", "pod"]
POLICIES: Final[tuple[Policy, ...]] = get_args(Policy)
SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
T = TypeVar("T")

POLICY: Final = "topologyManagerPolicy"
SCOPE: Final = "topologyManagerScope"
MAX_ZONES: Final = "topologyManagerMaxNUMANodes"
ATTRIBUTES: Final = (POLICY, SCOPE, MAX_ZONES)

DEFAULT_MAX_ZONES: Final = 8
MOST_ZONES: Final = 1024
NUMBER: Final = re.compile(r"[+-]?0{0,1000}[0-9]{1,19}")
LARGEST: Final = (1 << 63) - 1

LEGACY: Final[dict[str, tuple[Policy, Scope]]] = {
    "SingleNUMANodePodLevel": ("single-numa-node", "pod"),
    "SingleNUMANodeContainerLevel": ("single-numa-node", "container"),
    "RestrictedPodLevel": ("restricted", "pod"),
    "RestrictedContainerLevel": ("restricted", "container"),
    "BestEffortPodLevel": ("best-effort", "pod"),
    "BestEffortContainerLevel": ("best-effort", "container"),
}
LEGACY_NONE: Final = "None"
FIRST_TOKEN: Final = "topologyPolicies[0]"
TOKENS: Final = {settings: token for token, settings in LEGACY.items()}


class TopologyManager(Struct, frozen=True):
    """Values and defaults are the kubelet's."""

    policy: Policy = "none"
    scope: Scope = "container"
    max_zones: int = DEFAULT_MAX_ZONES


def write(manager: TopologyManager) -> dict[str, str]:
    return {POLICY: manager.policy, SCOPE: manager.scope, MAX_ZONES: str(manager.max_zones)}


def legacy_token(manager: TopologyManager) -> str:
    """The one token of v1alpha1; it has none for the scope of policy none."""
    return TOKENS.get((manager.policy, manager.scope), LEGACY_NONE)


def read(policies: Sequence[str], attributes: Sequence[Attribute], guesses: list[Guess]) -> TopologyManager:
    """The settings. An unset policy is none, an unset scope is container."""
    policy: Policy | None = _last_valid(POLICY, attributes, _policy, guesses)
    scope: Scope | None = _last_valid(SCOPE, attributes, _scope, guesses)
    max_zones = _last_valid(MAX_ZONES, attributes, _usable_limit, guesses)
    old_policy, old_scope = _legacy(policies, guesses)
    return TopologyManager(
        policy=_settled(policy, old_policy, "none", GuessCode.POLICY_ASSUMED, guesses),
        scope=_settled(scope, old_scope, "container", GuessCode.SCOPE_ASSUMED, guesses),
        max_zones=max_zones or DEFAULT_MAX_ZONES,
    )


def _last_valid(
    name: str, attributes: Sequence[Attribute], known: Callable[[str], T | None], guesses: list[Guess]
) -> T | None:
    found: T | None = None
    for place, attribute in enumerate(attributes):
        if attribute.name != name:
            continue
        value = known(attribute.value)
        where = f"attributes[{place}]"
        if value is None or str(value) != attribute.value:
            meant = "" if value is None else str(value)
            guesses.append(Guess(GuessCode.SETTING_UNKNOWN, where, errors.echo(attribute.value), meant))
        if value is not None and found is not None:
            guesses.append(Guess(GuessCode.ATTRIBUTE_DUPLICATE, where, str(found), str(value)))
        found = found if value is None else value
    return found


def _policy(text: str) -> Policy | None:
    return next((policy for policy in POLICIES if policy == text), None)


def _scope(text: str) -> Scope | None:
    return next((scope for scope in SCOPES if scope == text), None)


def _usable_limit(text: str) -> int | None:
    limit = int(text) if NUMBER.fullmatch(text) else 0
    return min(limit, MOST_ZONES) if 1 < limit <= LARGEST else None


def _legacy(policies: Sequence[str], guesses: list[Guess]) -> tuple[Policy | None, Scope | None]:
    for place, token in enumerate(policies[1:], start=1):
        guesses.append(Guess(GuessCode.LEGACY_EXTRA, f"topologyPolicies[{place}]", errors.echo(token)))
    token = policies[0] if policies else LEGACY_NONE
    if token in LEGACY:
        return LEGACY[token]
    if token != LEGACY_NONE:
        guesses.append(Guess(GuessCode.LEGACY_UNKNOWN, FIRST_TOKEN, errors.echo(token)))
    return ("none" if policies and token == LEGACY_NONE else None), None


def _settled(new: T | None, old: T | None, default: T, assumed: GuessCode, guesses: list[Guess]) -> T:
    if new is None and old is None:
        guesses.append(Guess(assumed, "attributes", "", str(default)))
    elif new is None:
        guesses.append(Guess(GuessCode.LEGACY_USED, FIRST_TOKEN, str(old), str(old)))
    elif old not in (None, new):
        guesses.append(Guess(GuessCode.LEGACY_OVERRIDDEN, FIRST_TOKEN, str(old), str(new)))
    return next(value for value in (new, old, default) if value is not None)
