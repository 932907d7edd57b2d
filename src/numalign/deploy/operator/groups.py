"""Node groups: which nodes each has, with which settings, and what is wrong with them. Pure.

`agents` calls `read` once for each reconciliation. On plain Kubernetes there are no MachineConfigPools. A pool is the
nodes with the role label `node-role.kubernetes.io/<pool>`, whatever its value. A machineConfigPoolSelector is
understood where it names a pool by the label that OpenShift puts on its pools, and refused otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from numalign.api import errors
from numalign.api.decode import fields
from numalign.api.decode.fields import Field
from numalign.api.objects import selectors
from numalign.api.objects.nodematching import LABEL_KEY
from numalign.api.objects.selectors import LabelSelector, LabelSelectorRequirement
from numalign.deploy.operator import crds
from numalign.deploy.operator.kinds import LONGEST_GROUP_NAME, GroupConfig, NodeGroupSpec
from numalign.deploy.operator.objects import Node

ROLE: Final = "node-role.kubernetes.io/"
POOL_LABEL: Final = "pools.operator.machineconfiguration.openshift.io/"
NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
SHORTEST_PERIOD, LONGEST_PERIOD = 1.0, 300.0
"""Seconds that the agent's --period may have."""
DEFAULT_PERIOD: Final = "10s"
FINGERPRINTING: Final = ("Disabled", "Enabled", "EnabledExclusiveResources")
MODES: Final = ("Periodic", "Events", "PeriodicAndEvents")
SWITCH: Final = ("Disabled", "Enabled")
OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
MOST_NAMED: Final = 10
"""Nodes that a message lists."""


class Settings(Struct, frozen=True, kw_only=True):
    """The configuration of a group, with defaults."""

    fingerprinting: str = "EnabledExclusiveResources"
    mode: str = "Periodic"
    period: float = 10.0
    """Seconds as configured; 0: no timer."""
    paused: bool = False
    tolerations: tuple[dict[str, Any], ...] = ()

    @property
    def agent_period(self) -> float:
        """The agent's --period. Without a timer, the longest: the agent reacts to events in every mode."""
        if self.mode == "Events" or not self.period:
            return LONGEST_PERIOD
        return min(max(self.period, SHORTEST_PERIOD), LONGEST_PERIOD)

    def status(self) -> dict[str, Any]:
        """As the status shows it."""
        return {
            "podsFingerprinting": self.fingerprinting,
            "infoRefreshMode": self.mode,
            "infoRefreshPeriod": fields.duration_text(self.period),
            "infoRefreshPause": SWITCH[self.paused],
        } | ({"tolerations": [dict(each) for each in self.tolerations]} if self.tolerations else {})


class Group(Struct, frozen=True, kw_only=True):
    name: str
    selector: LabelSelector
    """Over Nodes."""
    settings: Settings = Settings()
    is_pool: bool = True

    def has(self, node: Node) -> bool:
        return selectors.matches(self.selector, node.metadata.labels)


class Problem(Struct, frozen=True):
    """Why the groups cannot be deployed: the field, what is wrong with it, and what to do."""

    field: str
    why: str

    def __str__(self) -> str:
        return f"{self.field}: {self.why}"


def read(written: Sequence[NodeGroupSpec]) -> tuple[list[Group], list[Problem]]:
    """The groups that are valid, and every problem, in the order of the fields."""
    found, problems, names = list[Group](), list[Problem](), dict[str, str]()
    for number, each in enumerate(written):
        field = f"spec.nodeGroups[{number}]"
        named, mine = _identified(each, field)
        settings, more = _settings(each.config, field)
        mine = [*mine, *more]
        if len(each.annotations) > crds.MOST_ANNOTATIONS:
            mine.append(Problem(f"{field}.annotations", f"has {len(each.annotations)} entries; at most 8 are allowed"))
        if named is not None and named.name in names:
            mine.append(Problem(field, f"is a second group of the name {named.name}, after {names[named.name]}"))
        problems += mine
        if named is not None and not mine:
            names[named.name] = field
            found.append(Group(name=named.name, selector=named.selector, settings=settings, is_pool=named.is_pool))
    return found, problems


def _identified(group: NodeGroupSpec, field: str) -> tuple[Group | None, list[Problem]]:
    given = {
        "poolName": group.pool_name,
        "machineConfigPoolSelector": group.machine_config_pool_selector,
        "nodeSelector": group.node_selector,
    }
    present = [name for name, value in given.items() if value is not None]
    if len(present) != 1:
        found = f"has {' and '.join(present)}" if present else "has no specifier"
        return None, [Problem(field, f"{found}; exactly one of {', '.join(given)} is needed")]
    if group.node_selector is not None:
        return _by_selector(group, group.node_selector, field)
    if group.name:
        return None, [Problem(f"{field}.name", "goes with nodeSelector only; a pool has its own name")]
    if group.pool_name is not None:
        return _by_pool(group.pool_name, f"{field}.poolName")
    assert group.machine_config_pool_selector is not None
    return _by_pool_selector(group.machine_config_pool_selector, f"{field}.machineConfigPoolSelector")


def _by_selector(group: NodeGroupSpec, selector: LabelSelector, field: str) -> tuple[Group | None, list[Problem]]:
    problems = [
        *_name_problems(group.name, f"{field}.name"),
        *_selector_problems(selector, f"{field}.nodeSelector"),
    ]
    return (None, problems) if problems else (Group(name=group.name, selector=selector, is_pool=False), [])


def _by_pool(pool: str, field: str) -> tuple[Group | None, list[Problem]]:
    problems = list(_name_problems(pool, field))
    if problems:
        return None, problems
    role = LabelSelectorRequirement(key=f"{ROLE}{pool}", operator="Exists")
    return Group(name=pool, selector=LabelSelector(match_expressions=(role,))), []


def _by_pool_selector(selector: LabelSelector, field: str) -> tuple[Group | None, list[Problem]]:
    """The label of OpenShift's own pools names the pool; nothing else can be looked up here."""
    keys = [key for key, value in selector.match_labels.items() if not value]
    keys += [each.key for each in selector.match_expressions if each.operator == "Exists"]
    asked = len(selector.match_labels) + len(selector.match_expressions)
    if asked == 1 and keys and keys[0].startswith(POOL_LABEL):
        return _by_pool(keys[0].removeprefix(POOL_LABEL), field)
    why = (
        f"selects MachineConfigPools, which this cluster does not have; only the label {POOL_LABEL}<pool> is"
        " understood. Use poolName, or name and nodeSelector"
    )
    return None, [Problem(field, why)]


def _name_problems(name: str, field: str) -> Iterator[Problem]:
    if not name:
        yield Problem(field, "is empty; it names the DaemonSet of the group")
    elif not NAME.fullmatch(name) or len(name) > LONGEST_GROUP_NAME:
        why = f"{errors.echo(name)} is not up to {LONGEST_GROUP_NAME} lower-case letters, digits and inner dashes"
        yield Problem(field, why)


def _selector_problems(selector: LabelSelector, field: str) -> Iterator[Problem]:
    if selector.is_empty:
        yield Problem(field, "is empty, which would select every node; name a label, such as kubernetes.io/os: linux")
    for key in selector.match_labels:
        if not LABEL_KEY.fullmatch(key):
            yield Problem(f"{field}.matchLabels", f"{errors.echo(key)} is not the key of a label")
    for number, each in enumerate(selector.match_expressions):
        where = f"{field}.matchExpressions[{number}]"
        if not LABEL_KEY.fullmatch(each.key):
            yield Problem(f"{where}.key", f"{errors.echo(each.key)} is not the key of a label")
        if each.operator not in OPERATORS:
            yield Problem(f"{where}.operator", f"{errors.echo(each.operator)} is not one of {', '.join(OPERATORS)}")
        elif bool(each.values) != (each.operator in ("In", "NotIn")):
            yield Problem(f"{where}.values", "In and NotIn need values, Exists and DoesNotExist have none")


def _settings(config: GroupConfig, field: str) -> tuple[Settings, list[Problem]]:
    problems, usual = list[Problem](), Settings()
    place = f"{field}.config"

    def chosen(name: str, written: str | None, choices: Sequence[str], default: str) -> str:
        if written is None or written in choices:
            return written or default
        problems.append(Problem(f"{place}.{name}", f"{errors.echo(written)} is not one of {', '.join(choices)}"))
        return default

    period = duration(config.info_refresh_period or DEFAULT_PERIOD, f"{place}.infoRefreshPeriod")
    if isinstance(period, Problem):
        problems.append(period)
    settings = Settings(
        fingerprinting=chosen("podsFingerprinting", config.pods_fingerprinting, FINGERPRINTING, usual.fingerprinting),
        mode=chosen("infoRefreshMode", config.info_refresh_mode, MODES, usual.mode),
        period=usual.period if isinstance(period, Problem) else period,
        paused=chosen("infoRefreshPause", config.info_refresh_pause, SWITCH, SWITCH[0]) == SWITCH[1],
        tolerations=config.tolerations,
    )
    return settings, problems


def duration(written: str, field: str) -> float | Problem:
    """Seconds, 0 or more."""
    try:
        seconds = fields.duration_seconds(Field(written, field, "", ""))
    except errors.BadObject as problem:
        return Problem(field, problem.why)
    return Problem(field, f"{errors.echo(written)} is negative; 0s turns it off") if seconds < 0 else seconds


def members(groups: Iterable[Group], nodes: Iterable[Node]) -> dict[str, list[str]]:
    """The names of the nodes of each group, sorted."""
    known = sorted(nodes, key=lambda node: node.metadata.name)
    return {group.name: [node.metadata.name for node in known if group.has(node)] for group in groups}


def overlaps(found: Mapping[str, Sequence[str]]) -> list[str]:
    """A sentence for each pair of groups that share nodes; two agents on a node would write the same report."""
    names, sentences = list(found), list[str]()
    for place, one in enumerate(names):
        for other in names[place + 1 :]:
            both = sorted(set(found[one]).intersection(found[other]))
            if both:
                sentences.append(f"groups {one} and {other} share {counted(both)}")
    return sentences


def counted(nodes: Sequence[str]) -> str:
    """node a; nodes a, b; nodes a, ..., j and 3 more"""
    more = f" and {len(nodes) - MOST_NAMED} more" if len(nodes) > MOST_NAMED else ""
    return f"node{'s' if len(nodes) > 1 else ''} {', '.join(nodes[:MOST_NAMED])}{more}"
