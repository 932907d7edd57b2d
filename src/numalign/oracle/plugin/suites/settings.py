"""Recorded settings: the plugin's arguments, and the topology manager's configuration in a report."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from numalign.api.attributes.repairs import Guess, GuessCode
from numalign.api.decode import decode
from numalign.api.nrt import topologymanager
from numalign.api.nrt.topologymanager import TopologyManager
from numalign.api.nrt.wire import Attribute
from numalign.oracle.harness import suite
from numalign.oracle.harness.divergence import Case, Difference
from numalign.oracle.harness.suite import Suite
from numalign.oracle.plugin.suites import objects
from numalign.placement import referenceargs
from numalign.placement.reference import numanodes
from numalign.placement.referenceargs import NodeResourceTopologyMatchArgs


def _args(raw: Mapping[str, Any]) -> NodeResourceTopologyMatchArgs:
    return decode.decode(NodeResourceTopologyMatchArgs, raw)


def _validated(case: Case) -> object:
    invalid = referenceargs.problems(_args(case["input"]))
    return {"valid": not invalid, "error": referenceargs.aggregated(invalid)}


def _contains(expected: Any, answered: Any) -> Sequence[Difference]:
    part = expected["errorContains"]
    wrong = [] if part in answered["error"] else [Difference("errorContains", part, answered["error"])]
    rest = {key: expected[key] for key in expected if key != "errorContains"}
    return [*suite.exactly(rest, {"valid": answered["valid"]}), *wrong]


def _defaulted(case: Case) -> object:
    return {"args": msgspec.to_builtins(referenceargs.defaulted(_args(case["input"]["args"])))}


def _written(manager: TopologyManager) -> dict[str, Any]:
    return {"policy": manager.policy, "scope": manager.scope, "maxNUMANodes": manager.max_zones}


def _of_report(case: Case) -> object:
    return _written(numanodes.read(objects.report(case["input"]["nrt"])).manager)


# Our reader starts from the kubelet's defaults, the recorded helpers from any value, which unset fields keep.
def _of_attributes(case: Case) -> object:
    attributes = [Attribute(**raw) for raw in case["input"]["attributes"] or ()]
    found = _written(topologymanager.read((), attributes, []))
    names = {each.name for each in attributes if _is_valid(each)}
    keys = {"policy": topologymanager.POLICY, "scope": topologymanager.SCOPE, "maxNUMANodes": topologymanager.MAX_ZONES}
    return {key: found[key] if name in names else case["input"]["start"][key] for key, name in keys.items()}


def _is_valid(attribute: Attribute) -> bool:
    guesses: list[Guess] = []
    topologymanager.read((), [attribute], guesses)
    return not any(guess.code is GuessCode.SETTING_UNKNOWN and not guess.used for guess in guesses)


def _of_policies(case: Case) -> object:
    tokens = case["input"]["topologyPolicies"] or ()
    found = _written(topologymanager.read(tokens, (), []))
    known = any(token in topologymanager.LEGACY for token in tokens[:1])
    return case["input"]["start"] | {key: found[key] for key in ("policy", "scope") if known}


def _manager(raw: Mapping[str, Any]) -> TopologyManager:
    return TopologyManager(raw["policy"], raw["scope"], raw["maxNUMANodes"])


def _are_equal(case: Case) -> object:
    return {"result": _manager(case["input"]["a"]) == _manager(case["input"]["b"])}


SUITES: tuple[Suite, ...] = (
    Suite("config_validation", _validated, _contains),
    Suite("config_defaults", _defaulted),
    Suite("preemption_mode", lambda case: {"mode": referenceargs.preemption_mode(_args(case["input"]))}),
    Suite("tm_from_nrt", _of_report),
    Suite("tm_from_attributes", _of_attributes),
    Suite("tm_from_policies", _of_policies),
    Suite("tm_equal", _are_equal),
    Suite("tm_valid_scope", lambda case: {"result": case["input"]["scope"] in topologymanager.SCOPES}),
    Suite("tm_valid_policy", lambda case: {"result": case["input"]["policy"] in topologymanager.POLICIES}),
)
