"""Policy options as the kubelet reads them: name to text, with the maturity gates in between.

Shared by the topology and the CPU manager, whose options differ in name but not in kind."""

from __future__ import annotations

from numalign.kubelet import versions
from numalign.kubelet.refusals import StartRefusal
from numalign.kubelet.settings import Settings

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def require_available(option: str, known: frozenset[str], manager: str, settings: Settings) -> None:
    """Refuse options that this kubelet does not have, or whose maturity gate is off."""
    title, prefix = ("CPU Manager Policy", "CPU") if manager == "cpumanager" else ("topology manager policy", "Topology")
    stage = versions.option_stage(option, settings.minor) if option in known else None
    if stage is None:
        raise StartRefusal(manager, f'unknown {prefix} Manager Policy option: "{option}"')
    if stage == "ga" or settings.gate(f"{prefix}ManagerPolicy{stage.capitalize()}Options"):
        return
    level = f"{stage.capitalize()}-level Options" if prefix == "CPU" else f"{stage}-level options"
    raise StartRefusal(manager, f'{title} {level} not enabled, but option "{option}" provided')


def boolean(option: str, text: str, manager: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise StartRefusal(
        manager, f'bad value for option "{option}": strconv.ParseBool: parsing "{text}": invalid syntax'
    )
