"""The plugin's settings, NodeResourceTopologyMatchArgs, as scheduler configurations carry them.

`complete` reads, defaults and validates raw arguments; BadObject has the plugin's own messages.
The functions below the structs define what an absent or unknown setting means, which differs from setting to
setting (scheduler plugin spec 2). v1beta3 spells every field as v1 does.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, TypeVar

from msgspec import Struct, structs

from numalign.api import errors
from numalign.api.decode import decode
from numalign.api.decode.structs import Int64, Wire

KIND: Final = "NodeResourceTopologyMatchArgs"
GROUP: Final = "kubescheduler.config.k8s.io"
VERSIONS: Final = ("v1", "v1beta3")


class Strategy(StrEnum):
    LEAST_ALLOCATED = "LeastAllocated"
    MOST_ALLOCATED = "MostAllocated"
    BALANCED_ALLOCATION = "BalancedAllocation"
    LEAST_NUMA_NODES = "LeastNUMANodes"
    LEAST_FRAGMENTATION = "LeastFragmentation"
    """Ours, in the exact flavour: the plugin refuses it."""


class ForeignPodsDetect(StrEnum):
    ALL = "All"
    NONE = "None"
    ONLY_EXCLUSIVE = "OnlyExclusiveResources"


class ResyncMethod(StrEnum):
    AUTODETECT = "Autodetect"
    ALL = "All"
    ONLY_EXCLUSIVE = "OnlyExclusiveResources"


class InformerMode(StrEnum):
    DEDICATED = "Dedicated"
    SHARED = "Shared"


class ResyncScope(StrEnum):
    ALL = "All"
    ONLY_RESOURCES = "OnlyResources"


class PreemptionMode(StrEnum):
    DISABLED = "Disabled"
    ENABLED = "Enabled"


# Settings stay text here, because a value that is not known has a meaning too.
class ResourceSpec(Wire, frozen=True, omit_defaults=False):
    name: str = ""
    weight: Int64 = 0


class ScoringStrategy(Wire, frozen=True, omit_defaults=False):
    type: str = ""
    resources: tuple[ResourceSpec, ...] = ()


class CacheArgs(Wire, frozen=True):
    foreign_pods_detect: str | None = None
    resync_method: str | None = None
    informer_mode: str | None = None
    resync_scope: str | None = None


class NodeResourceTopologyMatchArgs(Wire, frozen=True):
    api_version: str = ""
    kind: str = ""
    scoring_strategy: ScoringStrategy | None = None
    cache_resync_period_seconds: Int64 | None = None
    discard_reserved_nodes: bool | None = None
    cache: CacheArgs | None = None
    preemption_mode: str | None = None


DEFAULT_RESOURCES: Final = (ResourceSpec(name="cpu", weight=1), ResourceSpec(name="memory", weight=1))
DEFAULT_CACHE: Final = CacheArgs(
    foreign_pods_detect=ForeignPodsDetect.ALL,
    resync_method=ResyncMethod.AUTODETECT,
    informer_mode=InformerMode.DEDICATED,
)


class Invalid(Struct, frozen=True):
    """One setting that the plugin refuses."""

    field: str
    value: str
    why: str
    known: tuple[str, ...]
    """Valid values, which the plugin's message omits."""

    def __str__(self) -> str:
        return f'{self.field}: Invalid value: "{self.value}": {self.why}'


def complete(raw: bytes | str | Mapping[str, Any]) -> NodeResourceTopologyMatchArgs:
    """The settings in `raw`, ready to use."""
    args = defaulted(decode.decode(NodeResourceTopologyMatchArgs, raw))
    if args.kind not in ("", KIND):
        raise errors.BadObject(KIND, "", "kind", f"{errors.echo(args.kind)} is not {KIND}")
    if args.api_version not in ("", *(f"{GROUP}/{version}" for version in VERSIONS)):
        why = f"{errors.echo(args.api_version)} is not {GROUP}/v1; write that"
        raise errors.BadObject(KIND, "", "apiVersion", why)
    for invalid in problems(args):
        remedy = f"write one of {', '.join(invalid.known)}"
        why = f"Invalid value: {errors.echo(invalid.value)}: {invalid.why}; {remedy}"
        raise errors.BadObject(KIND, "", invalid.field, why)
    return args


def defaulted(args: NodeResourceTopologyMatchArgs) -> NodeResourceTopologyMatchArgs:
    """The settings with defaults. A strategy without a type stays without one and is refused."""
    strategy = args.scoring_strategy or ScoringStrategy(type=Strategy.LEAST_ALLOCATED)
    resources = tuple(structs.replace(each, weight=each.weight or 1) for each in strategy.resources)
    return structs.replace(
        args,
        scoring_strategy=ScoringStrategy(type=strategy.type, resources=resources or DEFAULT_RESOURCES),
        cache=_filled(args.cache or CacheArgs()),
        preemption_mode=args.preemption_mode or PreemptionMode.DISABLED,
    )


def _filled(cache: CacheArgs) -> CacheArgs:
    written = {name: value for name, value in structs.asdict(cache).items() if value is not None}
    return structs.replace(DEFAULT_CACHE, **written)


def problems(args: NodeResourceTopologyMatchArgs) -> tuple[Invalid, ...]:
    """The settings that the plugin refuses at its start; it validates two only (scheduler plugin spec 2.3)."""
    looked_at = (
        ("scoringStrategy.type", (args.scoring_strategy or ScoringStrategy()).type, Strategy, "ScoringStrategyType"),
        ("preemptionMode", args.preemption_mode, PreemptionMode, "PreemptionMode"),
    )
    return tuple(
        Invalid(field, value, f"invalid {kind}", tuple(known))
        for field, value, known, kind in looked_at
        if value is not None and value not in set(known)
    )


def aggregated(invalid: Sequence[Invalid]) -> str:
    """All errors as the plugin's one error text."""
    return str(invalid[0]) if len(invalid) == 1 else f"[{', '.join(map(str, invalid))}]" if invalid else ""


def weights(args: NodeResourceTopologyMatchArgs) -> dict[str, int]:
    """Weights by resource; of repeated names the last counts, and less than one counts as one."""
    strategy = args.scoring_strategy or ScoringStrategy()
    return {each.name: max(each.weight, 1) for each in strategy.resources}


# The settings as they take effect. What an absent one means shows only where defaulting was skipped.


def foreign_pods_detect(cache: CacheArgs | None) -> ForeignPodsDetect:
    return _known(
        ForeignPodsDetect, (cache or CacheArgs()).foreign_pods_detect, ForeignPodsDetect.ALL, ForeignPodsDetect.ALL
    )


def resync_method(cache: CacheArgs | None) -> ResyncMethod:
    return _known(ResyncMethod, (cache or CacheArgs()).resync_method, ResyncMethod.AUTODETECT, ResyncMethod.ALL)


def informer_mode(cache: CacheArgs | None) -> InformerMode:
    return _known(InformerMode, (cache or CacheArgs()).informer_mode, InformerMode.SHARED, InformerMode.SHARED)


def resync_scope(cache: CacheArgs | None) -> ResyncScope:
    return _known(ResyncScope, (cache or CacheArgs()).resync_scope, ResyncScope.ALL, ResyncScope.ONLY_RESOURCES)


def preemption_mode(args: NodeResourceTopologyMatchArgs) -> PreemptionMode:
    return _known(PreemptionMode, args.preemption_mode, PreemptionMode.DISABLED, PreemptionMode.DISABLED)


Setting = TypeVar("Setting", bound=StrEnum)


def _known(kind: type[Setting], written: str | None, absent: Setting, unknown: Setting) -> Setting:
    if written is None:
        return absent
    return next((value for value in kind if value == written), unknown)
