"""Policy, scope and zone limit: from attributes, from the old token, and from both when they disagree."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.attributes.repairs import Guess, GuessCode
from numalign.api.nrt import topologymanager
from numalign.api.nrt.topologymanager import POLICIES, SCOPES, TopologyManager
from numalign.api.nrt.wire import Attribute

NAMES = {"policy": topologymanager.POLICY, "scope": topologymanager.SCOPE, "max": topologymanager.MAX_ZONES}
TOKENS = {
    "SingleNUMANodePodLevel": ("single-numa-node", "pod"),
    "SingleNUMANodeContainerLevel": ("single-numa-node", "container"),
    "RestrictedPodLevel": ("restricted", "pod"),
    "RestrictedContainerLevel": ("restricted", "container"),
    "BestEffortPodLevel": ("best-effort", "pod"),
    "BestEffortContainerLevel": ("best-effort", "container"),
}


def listed(*pairs: tuple[str, str]) -> list[Attribute]:
    return [Attribute(name=NAMES[name], value=value) for name, value in pairs]


def read(policies: Sequence[str], *pairs: tuple[str, str]) -> tuple[TopologyManager, set[GuessCode]]:
    guesses: list[Guess] = []
    manager = topologymanager.read(policies, listed(*pairs), guesses)
    return manager, {guess.code for guess in guesses}


BOTH = (("policy", "restricted"), ("scope", "pod"))
SAID: dict[str, tuple[Sequence[str], Sequence[tuple[str, str]], TopologyManager, set[GuessCode]]] = {
    "nothing": ((), (), TopologyManager(), {GuessCode.POLICY_ASSUMED, GuessCode.SCOPE_ASSUMED}),
    "both": ((), BOTH, TopologyManager("restricted", "pod"), set()),
    "policy only": ((), BOTH[:1], TopologyManager("restricted"), {GuessCode.SCOPE_ASSUMED}),
    "empty words": (
        (), (("policy", ""), ("scope", "")), TopologyManager(),
        {GuessCode.SETTING_UNKNOWN, GuessCode.POLICY_ASSUMED, GuessCode.SCOPE_ASSUMED},
    ),
    "capital letter": (
        (), (BOTH[0], ("scope", "Pod")), TopologyManager("restricted"),
        {GuessCode.SETTING_UNKNOWN, GuessCode.SCOPE_ASSUMED},
    ),
    "repeated: the last valid counts": (
        (), (("policy", "none"), *BOTH, ("policy", "?")), TopologyManager("restricted", "pod"),
        {GuessCode.ATTRIBUTE_DUPLICATE, GuessCode.SETTING_UNKNOWN},
    ),
    "token only": (["BestEffortPodLevel"], (), TopologyManager("best-effort", "pod"), {GuessCode.LEGACY_USED}),
    "token agrees": (["RestrictedPodLevel"], BOTH, TopologyManager("restricted", "pod"), set()),
    "token overridden in part": (
        ["BestEffortPodLevel"], (("scope", "container"),), TopologyManager("best-effort", "container"),
        {GuessCode.LEGACY_USED, GuessCode.LEGACY_OVERRIDDEN},
    ),
    "only the first token counts": (
        ["RestrictedContainerLevel", "BestEffortPodLevel"], (), TopologyManager("restricted"),
        {GuessCode.LEGACY_USED, GuessCode.LEGACY_EXTRA},
    ),
    "token None": (["None"], (), TopologyManager(), {GuessCode.LEGACY_USED, GuessCode.SCOPE_ASSUMED}),
    "token None beside attributes": (["None"], (("policy", "none"), BOTH[1]), TopologyManager("none", "pod"), set()),
    "token of the first days": (
        ["Restricted"], (), TopologyManager(),
        {GuessCode.LEGACY_UNKNOWN, GuessCode.POLICY_ASSUMED, GuessCode.SCOPE_ASSUMED},
    ),
}  # fmt: skip
LIMITS = {
    "9": 9, "8": 8, "2": 2, "1024": 1024, "1025": 1024, "9" * 18: 1024, "1": 8, "0": 8, "-9": 8, "": 8, "A": 8,
    "9.0": 8, "9" * 5000: 8, "+9": 9, str(2**63 - 1): 1024, str(2**63): 8, "0" * 30 + "9": 9, "0" * 5000: 8,
}  # fmt: skip


@pytest.mark.parametrize("policies, pairs, manager, codes", SAID.values(), ids=SAID)
def test_settings_are_read_and_doubts_are_noted(
    policies: Sequence[str], pairs: Sequence[tuple[str, str]], manager: TopologyManager, codes: set[GuessCode]
) -> None:
    assert read(policies, *pairs) == (manager, codes)


@pytest.mark.parametrize("text, limit", LIMITS.items(), ids=lambda value: str(value)[:20])
def test_the_zone_limit_is_a_number_above_one(text: str, limit: int) -> None:
    manager, codes = read((), *BOTH, ("max", text))
    assert manager.max_zones == limit
    assert (GuessCode.SETTING_UNKNOWN in codes) == (text != str(limit))


@pytest.mark.parametrize("token, said", TOKENS.items())
def test_a_token_carries_policy_and_scope(token: str, said: tuple[str, str]) -> None:
    manager, _ = read([token])
    assert (manager.policy, manager.scope) == said
    assert topologymanager.legacy_token(manager) == token


def test_policy_none_has_one_token_for_both_scopes() -> None:
    assert {topologymanager.legacy_token(TopologyManager("none", scope)) for scope in SCOPES} == {"None"}


@given(st.builds(TopologyManager, st.sampled_from(POLICIES), st.sampled_from(SCOPES), st.integers(2, 1024)))
def test_settings_are_read_back(manager: TopologyManager) -> None:
    guesses: list[Guess] = []
    written = [Attribute(name=name, value=value) for name, value in topologymanager.write(manager).items()]
    assert topologymanager.read((), written, guesses) == manager
    assert guesses == []
