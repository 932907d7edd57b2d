"""Answers the extender protocol about whole Node objects, as a question that promises nothing.

`http.extenderserver` calls it for POST /simulate/filter and /simulate/prioritize. An autoscaler asks so about nodes
that it might create. Nothing is charged and nothing is remembered: two questions in a row get the same answer. A node
that the cluster has is judged as it is now; any other by its template (`templates.of_node`). A node whose zones are not
known passes if its totals have room, because nothing speaks against it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from msgspec import Struct

from numalign.api.decode import decode
from numalign.api.errors import BadObject, clipped
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod
from numalign.api.schedulerconfig.configuration import Configuration
from numalign.placement.capacity import count, reasons
from numalign.placement.explain import wording
from numalign.scheduler.capacity import templates
from numalign.scheduler.capacity.templates import InstanceTypes, TemplateNode
from numalign.scheduler.choose import filtering
from numalign.scheduler.choose.cluster import Cluster
from numalign.scheduler.extender.protocol import ExtenderArgs, FilterResult, HostPriority, NodeList, name_of
from numalign.scheduler.profiles import Profile

HIGHEST: Final = 10
"""The highest score of the protocol."""
ZONE_SCORES: Final = 100
NO_NODES: Final = "needs whole Node objects; names belong to /filter and /prioritize"


class NodeAnswer(Struct, frozen=True):
    """What one node says: a score, or why it does not take the pod."""

    score: int = 0
    reason: str = ""


class Simulation:
    def __init__(self, cluster: Cluster, profiles: Mapping[str, Profile], config: Configuration) -> None:
        """`profiles`: by scheduler name; pods of other names are judged by the first one."""
        self._cluster, self._profiles, self._config = cluster, profiles, config

    def filter(self, asked: ExtenderArgs) -> FilterResult:
        """The nodes that would admit the pod, whole as they came; the reason of each other node."""
        answers = self._answers(asked, scored=False)
        assert asked.nodes is not None
        failed = {name: each.reason for name, each in answers.items() if each.reason}
        passing = NodeList(tuple(each for each in asked.nodes.items if name_of(each) not in failed))
        return FilterResult(nodes=passing, failed_and_unresolvable_nodes=failed)

    def prioritize(self, asked: ExtenderArgs) -> list[HostPriority]:
        """Scores by zones; 0 where the node would not admit the pod."""
        return [HostPriority(name, each.score) for name, each in self._answers(asked, scored=True).items()]

    def _answers(self, asked: ExtenderArgs, *, scored: bool) -> dict[str, NodeAnswer]:
        if asked.nodes is None:
            raise BadObject("ExtenderArgs", clipped(asked.pod.metadata.name), "Nodes", NO_NODES)
        types, found = InstanceTypes(self._cluster), dict[str, NodeAnswer]()
        known, new = list[str](), list[TemplateNode]()
        for each in asked.nodes.items:
            try:
                node = _named(decode.decode(Node, each))
                if self._cluster.has_node(node.metadata.name):
                    known.append(node.metadata.name)
                else:
                    new.append(templates.of_node(node, types))
            except BadObject as problem:
                # One odd node is no reason to say nothing about the others.
                found[name_of(each)] = NodeAnswer(reason=str(problem))
        found |= _judged(self._cluster, self._profile(self._profiles, asked.pod), asked.pod, known, scored=scored)
        if new:
            made = templates.scratch(self._config, new)
            names = [each.node.metadata.name for each in new]
            found |= _judged(made.cluster, self._profile(made.profiles, asked.pod), asked.pod, names, scored=scored)
        return {name: found[name] for name in map(name_of, asked.nodes.items)}

    @staticmethod
    def _profile(profiles: Mapping[str, Profile], pod: Pod) -> Profile:
        return profiles.get(pod.spec.scheduler_name) or next(iter(profiles.values()))


def _named(node: Node) -> Node:
    if not node.metadata.name:
        raise BadObject("Node", "", "metadata.name", "is empty")
    return node


def _judged(cluster: Cluster, profile: Profile, pod: Pod, names: list[str], *, scored: bool) -> dict[str, NodeAnswer]:
    engine = cluster.engine
    rows = np.array([engine.rows[name] for name in names], np.int32)
    shape = filtering.shape(profile, engine, pod)
    if not len(rows) or not profile.zones:
        return {name: NodeAnswer() for name in names}
    (found,) = count.count(engine, [shape], rows)
    codes = engine.survey(shape) if scored else np.zeros(engine.height, np.int8)
    why, answers = reasons.of(engine, found), {}
    for place, row in enumerate(found.rows.tolist()):
        fits = found.counts[place] > 0
        reason = "" if fits else wording.sentence(why.reason(place))
        score = max(0, int(codes[row])) * HIGHEST // ZONE_SCORES if fits else 0
        answers[engine.names[row]] = NodeAnswer(score, reason)
    return answers
