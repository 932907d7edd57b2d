"""Policy options as the kubelet reads them: name to text, with the maturity gates in between.

Shared by the topology and the CPU manager, whose options differ in name but not in kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from numalign.kubelet import versions
from numalign.kubelet.refusals import StartRefusal
from numalign.kubelet.settings import Settings

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


class Naming(NamedTuple):
    """How a manager words its refusals."""

    manager: str
    prefix: str
    """Of its maturity gates."""
    not_enabled: Mapping[versions.Stage, str]


CPU = Naming(
    "cpumanager",
    "CPU",
    {
        "alpha": "CPU Manager Policy Alpha-level Options not enabled",
        "beta": "CPU Manager Policy Beta-level Options not enabled",
    },
)
TOPOLOGY = Naming(
    "topologymanager",
    "Topology",
    {
        "alpha": "topology manager policy alpha-level options not enabled",
        "beta": "topology manager policy beta-level options not enabled",
    },
)


def require_available(option: str, known: frozenset[str], naming: Naming, settings: Settings) -> None:
    """Refuse options that this kubelet does not have, or whose maturity gate is off."""
    stage = versions.option_stage(option, settings.minor) if option in known else None
    if stage is None:
        raise StartRefusal(naming.manager, f'unknown {naming.prefix} Manager Policy option: "{option}"')
    if stage != "ga" and not settings.gate(f"{naming.prefix}ManagerPolicy{stage.capitalize()}Options"):
        raise StartRefusal(naming.manager, f'{naming.not_enabled[stage]}, but option "{option}" provided')


def boolean(option: str, text: str, naming: Naming) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise StartRefusal(
        naming.manager, f'bad value for option "{option}": strconv.ParseBool: parsing "{text}": invalid syntax'
    )
