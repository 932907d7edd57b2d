"""Histories of the operator under everything at once: bad weather on its lines, drift, restarts, and people who edit.

What happens is drawn from the seed. At the end everything is healed: settings are valid, no resource is paused, and no
node is in two groups. `complaints` says what did not hold then: the cluster is not what `deploy render` prints for the
same settings, a resource is not Available, or the operator still writes although nothing happens."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from numalign.deploy.operator import fields, kinds
from numalign.deploy.operator.objects import Live
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import NODES
from tests.embedded import operatorstories as stories
from tests.embedded.faultproxy import Weather
from tests.embedded.operatorstories import OPERATOR, SCHEDULER, Process, Stage, node
from tests.embedded.schedulerstories import forget

STRANGERS = fields._strangers
"""Bound here, so that an operator that is broken for a test does not break its judge."""
SPECS = [node("w-0", "worker"), node("w-1", "worker"), node("c-0", "control-plane"), node("f-0")]
BLOWS = 12
PAUSE = 5.0
"""Mean seconds between two blows."""
REST = 130.0
LONGEST = 900.0
"""Seconds after the last blow in which everything has to be in order."""
QUIET = 130.0
"""Seconds without a write that count as quiet: more than two resyncs."""


@dataclass
class Told:
    stage: Stage
    complaints: list[str]
    blows: list[str] = field(default_factory=list)


def weather(seed: int) -> Weather:
    chance = random.Random(f"{seed}/weather")
    return Weather(
        calls=chance.uniform(0.0, 0.3),
        events=chance.uniform(0.0, 0.15),
        outages=chance.uniform(40.0, 200.0),
        silence=40.0,
    )


def played(seed: int) -> Told:
    found: list[Told] = []

    async def plot(stage: Stage) -> None:
        found.append(await _havoc(stage))

    stories.told(plot, SPECS, seed=seed, replicas=2, weather=weather(seed))
    return found[0]


async def _havoc(stage: Stage) -> Told:
    told = Told(stage, [])
    storms = [asyncio.ensure_future(each.proxy.storm()) for each in stage.processes]
    stage.create(stories.operator(*_groups(stage.draw)))
    stage.create(stories.scheduler(**_settings(stage.draw)))
    for _ in range(BLOWS):
        await stage.clock.sleep(stage.draw.expovariate(1 / PAUSE))
        blow = stage.draw.choice(ALL)
        told.blows.append(blow.__name__)
        try:
            await blow(stage)
        except StatusError as refused:
            told.blows[-1] += f" ({refused})"
    for storm in storms:
        storm.cancel()
    await asyncio.gather(*storms, return_exceptions=True)
    for each in stage.processes:
        each.proxy.calm()
    _heal(stage)
    told.complaints += await _settled(stage)
    return told


async def _settled(stage: Stage) -> list[str]:
    # What fell silent is noticed after a minute, and an Event is tried again for two.
    await stage.clock.sleep(REST)
    waited, wrong = REST, _differences(stage)
    while waited < LONGEST and wrong:
        await stage.clock.sleep(10.0)
        waited += 10.0
        wrong = _differences(stage)
    if not wrong:
        wrong = [f"wrote {each} although nothing happened" for each in await stage.quiet(QUIET)]
    return [*wrong, *_differences(stage), *stage.breaches]


def _differences(stage: Stage) -> list[str]:
    states = {each.kind: stage.state(each) for each in (OPERATOR, SCHEDULER)}
    found = [f"{kind} is {state}" for kind, state in states.items() if state[0] != "Available"]
    wanted, there = stories.wanted(stage), stage.ours()
    wanted = {key: tree for key, tree in wanted.items() if key[0] != "CustomResourceDefinition"}
    found += [f"{key} is missing" for key in sorted(set(wanted) - set(there))]
    found += [f"{key} is too many" for key in sorted(set(there) - set(wanted))]
    owners = {each.kind: (stage.get(each.kind, each.name) or {})["metadata"]["uid"] for each in (OPERATOR, SCHEDULER)}
    for key in sorted(set(wanted) & set(there)):
        live = msgspec.convert(there[key], Live)
        if any(STRANGERS(wanted[key], live)) or not _has(wanted[key], live):
            found.append(f"{key} differs")
        references = there[key]["metadata"].get("ownerReferences") or []
        if [each["uid"] for each in references] != [owners.get(each["kind"]) for each in references[:1]]:
            found.append(f"{key} has the owners {references}")
    return found


def _has(wanted: Any, live: Live) -> bool:
    content = {key: value for key, value in wanted.items() if key not in ("apiVersion", "kind")}
    return stories.is_within(content, live.tree())


# Settings


def _groups(draw: random.Random) -> list[dict[str, Any]]:
    label = "pools.operator.machineconfiguration.openshift.io/worker"
    zones = {"key": "zone", "operator": "In", "values": ["a", "b"]}
    workers: dict[str, Any] = draw.choice(
        [{"poolName": "worker"}, {"machineConfigPoolSelector": {"matchLabels": {label: ""}}}]
    )
    others: list[dict[str, Any]] = [
        {"poolName": "control-plane"},
        {"name": "free", "nodeSelector": {"matchExpressions": [zones]}},
    ]
    return [_configured(each, draw) for each in draw.sample([workers, *others], draw.randint(0, 3))]


def _configured(group: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    config = {
        "podsFingerprinting": draw.choice([None, "Disabled", "Enabled"]),
        "infoRefreshPeriod": draw.choice([None, "5s", "0s", "2m"]),
        "infoRefreshPause": draw.choice([None, "Enabled"]),
        "tolerations": draw.choice([None, [{"key": "a", "operator": "Exists"}]]),
    }
    given = {key: value for key, value in config.items() if value is not None}
    return group | ({"config": given} if given else {})


def _settings(draw: random.Random) -> dict[str, Any]:
    given = {
        "schedulerName": draw.choice([None, "mine", "other"]),
        "imageSpec": draw.choice([None, "x.io/scheduler:1", "x.io/scheduler:2"]),
        "cacheResyncPeriod": draw.choice([None, "7s", "0s"]),
        "scoringStrategy": draw.choice([None, {"type": "MostAllocated"}]),
        "replicas": draw.choice([None, 0, 1]),
        "logLevel": draw.choice(["Normal", "Debug"]),
    }
    return {key: value for key, value in given.items() if value is not None}


NOTHING: dict[str, Any] = dict.fromkeys(
    ("schedulerName", "imageSpec", "cacheResyncPeriod", "scoringStrategy", "replicas", "logLevel")
)


def _heal(stage: Stage) -> None:
    stage.label("f-0", **{stories.WORKER: None, stories.CONTROL: None})
    stage.role("c-0", "control-plane")
    for custom in (OPERATOR, SCHEDULER):
        if stage.get(custom.kind, custom.name) is None:
            stage.create(stories.operator() if custom is OPERATOR else stories.scheduler())
        stage.annotate(custom, kinds.PAUSE, None)
    stage.set_spec(OPERATOR, nodeGroups=_groups(stage.draw), imageSpec=None)
    stage.set_spec(SCHEDULER, **NOTHING | _settings(stage.draw))


# Blows


async def edit_groups(stage: Stage) -> None:
    stage.set_spec(OPERATOR, nodeGroups=_groups(stage.draw), logLevel=stage.draw.choice(["Normal", "Trace"]))


async def edit_scheduler(stage: Stage) -> None:
    stage.set_spec(SCHEDULER, **NOTHING | _settings(stage.draw))


async def edit_badly(stage: Stage) -> None:
    bad = [
        [{"poolName": "worker", "config": {"tolerations": [{"key": "a", "operator": "Roughly"}]}}],
        [{"poolName": "worker"}, {"poolName": "worker"}],
        [{"machineConfigPoolSelector": {"matchLabels": {"team": "a"}}}],
    ]
    if stage.draw.random() < 0.5:
        stage.set_spec(OPERATOR, nodeGroups=stage.draw.choice(bad))
    else:
        stage.set_spec(SCHEDULER, schedulerName="default-scheduler", replicas=stage.draw.choice([1, 9]))


async def drift(stage: Stage) -> None:
    there = sorted(stage.ours())
    if not there:
        return
    kind, namespace, name = stage.draw.choice(there)
    changes: dict[str, list[Any]] = {
        "ConfigMap": [{"data": {"more": "x"}}, {"data": None}],
        "DaemonSet": [
            {"spec": {"template": {"spec": {"hostNetwork": True}}}},
            {"spec": {"template": {"spec": {"tolerations": [{"operator": "Exists"}]}}}},
        ],
        "Deployment": [{"spec": {"replicas": 5}}, {"spec": {"paused": True}}],
        "ClusterRole": [{"rules": []}],
        "Role": [{"rules": []}],
        "RoleBinding": [{"subjects": []}],
        "Service": [{"spec": {"type": "NodePort"}}],
    }
    labels = [{"metadata": {"labels": {"app.kubernetes.io/managed-by": None}}}, {"metadata": {"labels": {"more": "x"}}}]
    stage.edit(kind, name, stage.draw.choice(changes.get(kind, []) + labels), namespace)


async def delete_objects(stage: Stage) -> None:
    there = sorted(stage.ours())
    for kind, namespace, name in stage.draw.sample(there, min(len(there), stage.draw.randint(1, 6))):
        stage.delete(kind, name, namespace)


async def make_again(stage: Stage) -> None:
    custom = stage.draw.choice([OPERATOR, SCHEDULER])
    stage.delete(custom.kind, custom.name)
    await stage.clock.sleep(stage.draw.choice([0.0, 0.1, 3.0, 30.0]))
    again = stories.operator(*_groups(stage.draw)) if custom is OPERATOR else stories.scheduler(**_settings(stage.draw))
    stage.create(again)


async def pause(stage: Stage) -> None:
    custom = stage.draw.choice([OPERATOR, SCHEDULER])
    stage.annotate(custom, kinds.PAUSE, stage.draw.choice(["enabled", None]))


async def relabel(stage: Stage) -> None:
    stage.role("f-0", stage.draw.choice(["worker", "control-plane"]), stage.draw.choice(["", None]))
    stage.label("f-0", zone=stage.draw.choice(["a", "c", None]))


async def lose_control_plane(stage: Stage) -> None:
    stage.role("c-0", "control-plane", stage.draw.choice(["", None]))


async def kill(stage: Stage) -> None:
    _victim(stage).kill()


async def stop(stage: Stage) -> None:
    _victim(stage).stop()


async def cut_off(stage: Stage) -> None:
    await _victim(stage).cut_off(stage.draw.uniform(1.0, 40.0))


async def restart_server(stage: Stage) -> None:
    away = asyncio.gather(*(each.cut_off(stage.draw.uniform(0.0, 20.0)) for each in stage.processes))
    await asyncio.sleep(0)
    store = stage.api.state.store
    for kind in ("DaemonSet", "ConfigMap", OPERATOR.kind):
        forget(store.collection(stage.resource(kind)).watch_cache, store.version)
    await away


async def lose_node(stage: Stage) -> None:
    name = "f-0"
    if name in stage.embedded.fleet.nodes:
        stage.embedded.fleet.remove(name)
        stage.api.delete(NODES, name)
        await stage.clock.sleep(stage.draw.choice([0.1, 10.0]))
        stage.embedded.fleet.add(next(spec for spec in SPECS if spec.name == name))


ALL: list[Callable[[Stage], Awaitable[None]]] = [
    edit_groups,
    edit_groups,
    edit_scheduler,
    edit_badly,
    drift,
    drift,
    drift,
    delete_objects,
    make_again,
    pause,
    relabel,
    lose_control_plane,
    kill,
    kill,
    stop,
    cut_off,
    restart_server,
    lose_node,
]


def _victim(stage: Stage) -> Process:
    leading = [each for each in stage.processes if each.now is not None and each.now.leads()]
    return leading[0] if leading and stage.draw.random() < 0.8 else stage.draw.choice(stage.processes)
