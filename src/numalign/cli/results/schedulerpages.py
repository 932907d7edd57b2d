"""Draws what `numalign scheduler` prints: the state of a scheduler, a repeated decision, and a configuration.

`state` draws a page as the scheduler sent it. The scheduler may have another version, so no field is taken for granted.
`replay_text` compares a decision with the recorded one, with the words and tables of `explain`. `config_output` has the
configuration's own names and is complete; `config_text` shows plugin settings only where they are not the default.
What needs the scheduler's code imports it when it runs, so that a look at a running scheduler is fast."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, structs
from rich.table import Table

from numalign.api.decode import fields
from numalign.cli import output
from numalign.cli.display import formats, matrix
from numalign.cli.display.formats import INDENT, Page

if TYPE_CHECKING:
    from numalign.api.schedulerconfig.configuration import Configuration, Profile
    from numalign.cli.results import explanation
    from numalign.scheduler.choose.scoring import NodeScore
    from numalign.scheduler.explain.replay import NodeReplay, ReplayResult

PageData = Mapping[str, Any]
BEFORE_DETAILS = ("at", "what")


def state(data: PageData, *, wide: bool = False) -> str:
    """`wide`: a line for each pod that waits. Otherwise pods that wait for the same reason are one line."""
    page = Page()
    if isinstance(data.get("node"), dict):
        node(page, data["node"])
        return page.text()
    if "leads" in data:
        _numbers(page, data)
    _queue(page, data.get("queue") or {}, wide=wide)
    _on_their_way(page, data.get("assumed") or {})
    for story in data.get("histories") or ():
        _story(page, story)
    if data.get("node"):
        _held(page, data)
    for each in data["nodes"] if isinstance(data.get("nodes"), list) else ():
        page.add()
        node(page, each)
    return page.text()


def within(data: PageData, namespace: str) -> PageData:
    """The same with the pods of this namespace only."""
    inside = f"{namespace}/"
    queue = {
        pool: [each for each in pods if each["pod"].startswith(inside)]
        for pool, pods in (data.get("queue") or {}).items()
    }
    assumed = {pod: where for pod, where in (data.get("assumed") or {}).items() if pod.startswith(inside)}
    return {**data, "queue": queue, "assumed": assumed}


def names(data: PageData) -> list[str]:
    """The pods that wait."""
    return [each["pod"] for pods in (data.get("queue") or {}).values() for each in pods]


def news(before: PageData, now: PageData) -> list[str]:
    """What is new since an earlier look, a line each: pods that wait or are on their way, and entries of histories."""
    old = set(_lines(before))
    return [line for line in _lines(now) if line not in old]


def _lines(data: PageData) -> Iterator[str]:
    for pool, pods in (data.get("queue") or {}).items():
        for each in pods:
            yield f"{pool}  {each['pod']}  tried {each.get('attempts', 0)}" + (
                f"  {why}" if (why := _why(each)) else ""
            )
    for pod, where in (data.get("assumed") or {}).items():
        yield f"on its way  {pod}  to {where['node']}" + (", bound" if where.get("bound") else "")
    for story in data.get("histories") or ():
        for entry in story["lines"]:
            yield f"{entry['at']}  {_line_text(entry)}"


def knows_pod(data: PageData) -> bool:
    waits = any((data.get("queue") or {}).values())
    return waits or any(data.get(name) for name in ("assumed", "histories", "decisions", "node"))


def knows_node(data: PageData) -> bool:
    found = data.get("node") or {}
    return bool(found.get("isThere") or found.get("pods") or "policy" in found)


def _numbers(page: Page, data: PageData) -> None:
    grid = formats.labelled()
    grid.add_row("leads", "yes" if data["leads"] else "no, another one does")
    nodes = data.get("nodes")
    grid.add_row(
        "knows",
        f"{len(nodes) if isinstance(nodes, list) else nodes} nodes, {data.get('pods')} pods on them, "
        f"{data.get('shapes')} kinds of pods",
    )
    grid.add_row("in flight", ", ".join(data.get("inFlight") or ()) or "none")
    for pod, node in (data.get("nominated") or {}).items():
        grid.add_row("nominated", f"{pod} to {node}")
    for kept in data.get("keptOff") or ():
        who = f"pods like {kept['like']}" + (f" of owner {kept['owner']}" if kept.get("owner") else "")
        grid.add_row("kept off", f"{who} off {kept['node']}, for {_seconds(kept['seconds'])} at least")
    page.add(grid)
    page.add()


def _queue(page: Page, queue: PageData, *, wide: bool) -> None:
    table = page.table("POOL", "POD", "WAITS", "TRIED", *(["PRIORITY", "AFTER"] if wide else []), "WHY")
    for pool, pods in queue.items():
        alike: dict[object, list[PageData]] = {}
        for number, pod in enumerate(pods):
            alike.setdefault((number if wide else pod["pod"].partition("/")[0], _why(pod)), []).append(pod)
        for several in alike.values():
            first = several[0]
            name = first["pod"] + (f" and {len(several) - 1} more" if len(several) > 1 else "")
            waits = max(each.get("waits", 0) for each in several)
            tried = max(each.get("attempts", 0) for each in several)
            more = [str(first.get("priority", 0)), first.get("cause") or "-"] if wide else []
            table.add_row(pool, name, _seconds(waits), str(tried), *more, _why(first))
    page.add(table if table.row_count else "No pod waits.")


def _why(pod: PageData) -> str:
    why = [f"{plugin}: {', '.join(reasons)}" for plugin, reasons in (pod.get("refused") or {}).items()]
    return "; ".join([*why, *([f"held by {pod['gate']}"] if pod.get("gate") else [])])


def _on_their_way(page: Page, assumed: PageData) -> None:
    if not assumed:
        return
    table = page.table("ON ITS WAY", "TO", "")
    for pod, where in assumed.items():
        table.add_row(pod, where["node"], "bound, not seen there yet" if where.get("bound") else "to be bound")
    page.add()
    page.add(table)


def _story(page: Page, story: PageData) -> None:
    page.add()
    page.add(f"{story['pod']} ({story['uid']})")
    grid = formats.labelled()
    for line in story["lines"]:
        grid.add_row(line["at"], _line_text(line))
    page.add(grid, indent=INDENT)
    if story.get("leftOut"):
        page.add(f"({story['leftOut']} lines in the middle were left out)", indent=INDENT)


def _line_text(line: PageData) -> str:
    details = ", ".join(f"{name} {value}" for name, value in line.items() if name not in BEFORE_DETAILS and value != "")
    return f"{line['what']}: {details}" if details else str(line["what"])


def _held(page: Page, data: PageData) -> None:
    held = data.get("held")
    page.add()
    if not held:
        return page.add(f"On {data['node']}; nothing is known about zones there.")
    page.add(f"On {data['node']}, {_containers(held)} ({held['source']})")


def node(page: Page, data: PageData) -> None:
    head = f"{data['name']}"
    if "policy" not in data:
        pods = ", ".join(data.get("pods") or ()) or "none"
        return page.add(f"{head}: no report; pods: {pods}" if data.get("isThere") else f"{head}: no such node")
    page.add(f"{head}: {data['policy']}, scope {data['scope']}")
    zones = data.get("zones") or ()
    resources = {
        name: {tuple(cell["zones"]): _free(name, cell) for cell in cells}
        for name, cells in (data.get("resources") or {}).items()
    }
    # Devices may belong to several zones, or to none.
    shared = any(len(place) != 1 for by_zone in resources.values() for place in by_zone)
    table = page.table("FREE", *(f"zone {zone}" for zone in zones), *(["several zones or none"] if shared else []))
    for name, by_zone in resources.items():
        others = ", ".join(text for place, text in by_zone.items() if len(place) != 1)
        named = _resource_name(name, resources)
        table.add_row(named, *(by_zone.get((zone,), "-") for zone in zones), *([others] if shared else []))
    page.add(table, indent=INDENT)
    _tenants(page, data.get("tenants") or ())


def _resource_name(name: str, known: Iterable[str]) -> str:
    """Without its domain, which breaks where a node has eight zones; as it is if another resource reads the same."""
    short = name.rpartition("/")[2]
    return short if sum(each.rpartition("/")[2] == short for each in known) == 1 else name


def _free(resource: str, cell: PageData) -> str:
    return formats.free_of(resource, cell["free"], cell["allocatable"]).removesuffix(" free")


def _tenants(page: Page, tenants: Iterable[PageData]) -> None:
    table = page.table("POD", "ZONES", "SOURCE", "")
    for each in tenants:
        notes = [
            words for flag, words in (("is_pending", "not admitted yet"), ("is_leaving", "leaving")) if each.get(flag)
        ]
        table.add_row(each["name"], _containers(each), each["source"], ", ".join(notes))
    if table.row_count:
        page.add(table, indent=INDENT)


def _containers(held: PageData) -> str:
    found = held.get("containers") or {}
    return ", ".join(f"{name} in {_sets(sets)}" for name, sets in found.items()) or "no container is aligned"


def _sets(sets: Iterable[Iterable[int]]) -> str:
    return " or ".join("+".join(map(str, zones)) for zones in sets)


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f}s" if seconds < 600 else f"{seconds / 60:.0f}m"


def plain(again: ReplayResult) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(again, on_node=None), str_keys=True)
    return data | {"on_node": _plain_node(again.on_node) if again.on_node is not None else None}


def replay_text(again: ReplayResult) -> str:
    page, grid = Page(), formats.labelled()
    grid.add_row("pod", output.printable(again.pod))
    grid.add_row("now", outcome(again.node, again.zones, again.message))
    if again.before is not None:
        grid.add_row("then", outcome(again.before.node, again.before.zones, again.before.message))
        grid.add_row("", "the same" if again.agrees else "not the same: the cluster has changed since")
    else:
        grid.add_row("then", "not remembered")
    page.add(grid)
    if again.on_node is not None:
        page.add()
        _on_node(page, again.on_node)
    elif again.best:
        page.add()
        _ranked(page, again.best)
    return page.text()


def _plain_node(found: NodeReplay) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins({"answer": _answer(found), "ranked": found.ranked})
    return data | {"occupied": _occupied(found)}


def _answer(found: NodeReplay) -> explanation.NodeOutput:
    from numalign.cli.results import explanation

    return (
        explanation.node_output(found.node, found.answer)
        if found.answer is not None
        else explanation.fitting_node(found.node)
    )


def _occupied(found: NodeReplay) -> dict[str, Any]:
    """One node, as the scheduler's page describes it."""
    seen = msgspec.to_builtins(found.occupied, str_keys=True) if found.occupied is not None else {}
    return {"name": found.node, "isThere": True} | seen


def _on_node(page: Page, found: NodeReplay) -> None:
    answer = _answer(found)
    page.add(output.printable(f"{found.node} {f'refuses: {answer.why}' if answer.why else 'takes the pod'}"))
    if answer.lacks:
        page.add(matrix.lacks(page, answer.lacks, empty=answer.never), indent=INDENT)
    if found.ranked is not None:
        page.add()
        _ranked(page, [found.ranked])
    page.add()
    node(page, _occupied(found))


def outcome(node: str, zones: str, message: str) -> str:
    return output.printable(node + (f", {zones}" if zones else "") if node else message)


def _ranked(page: Page, ranked: Sequence[NodeScore]) -> None:
    table = page.table("NODE", "TOTAL", *ranked[0].plugins)
    for each in ranked:
        table.add_row(each.node, str(each.total), *(str(each.plugins.get(name, 0)) for name in ranked[0].plugins))
    if page.fits(table):
        return page.add(table)
    for each in ranked:
        parts = ", ".join(f"{name} {score}" for name, score in each.plugins.items() if score)
        page.add(f"{each.node}: {each.total} = {parts}")


Line = tuple[str, str]


def config_output(config: Configuration) -> dict[str, Any]:
    """Everything, with nothing left out for being the default."""
    plain: dict[str, Any] = _plain(config)
    return plain


def config_text(config: Configuration) -> str:
    page = formats.Page()
    page.add(_grid(_process(config)))
    for profile in config.profiles:
        page.add()
        page.add(f"Profile {profile.scheduler_name}")
        page.add(_grid(_profile(profile)), indent=formats.INDENT)
    return page.text()


def _process(config: Configuration) -> Iterator[Line]:
    from numalign.placement.settings import cache_mode
    from numalign.scheduler import settings

    own, lease, client = settings.ours(config), config.leader_election, config.client_connection
    yield "serves", ", ".join(f"pods of {profile.scheduler_name}" for profile in config.profiles)
    lasts, renewed, tried = map(fields.duration_text, (lease.lease_duration, lease.renew_deadline, lease.retry_period))
    name = f"{lease.resource_namespace}/{lease.resource_name}"
    times = f"valid for {lasts}, given up if not renewed for {renewed}, tried every {tried}"
    yield "leads", f"with lease {name}: {times}" if lease.leader_elect else "without leader election"
    limit = "no limit on calls" if client.qps is None else f"{client.qps:g} calls a second, {client.burst} at once"
    yield "API server", f"{client.kubeconfig or 'credentials of its pod'}; {limit}"
    parked = fields.duration_text(own.pod_max_in_unschedulable_pods_duration)
    backoff = f"{config.pod_initial_backoff_seconds}s to {config.pod_max_backoff_seconds}s"
    yield "backoff", f"{backoff}; retried without an event after {parked}"
    if any(map(settings.looks_at_zones, config.profiles)):
        zones = settings.engine(config)
        rules = "the kubelet's rules" if zones.flavour == "exact" else "the rules of the Go plugin"
        yield "zones", f"by {rules} (flavour {zones.flavour}), {cache_mode(zones)} cache, score {zones.strategy.value}"


def _profile(profile: Profile) -> Iterator[Line]:
    from numalign.api.schedulerconfig.plugins import POINTS, Point
    from numalign.scheduler import settings

    plugins, percentage = profile.plugins, profile.percentage_of_nodes_to_score
    yield "filters", ", ".join(plugins.at[Point.FILTER]) or "none"
    yield "scores", ", ".join(f"{name} x{weight}" for name, weight in plugins.weights.items()) or "none"
    yield (
        "looks at",
        {None: "all nodes", 0: "fewer nodes the more there are"}.get(percentage, f"{percentage}% of nodes"),
    )
    if not settings.looks_at_zones(profile):
        yield "zones", "ignored: pods are placed by node totals only, and nodes may reject them"
    else:
        yield "zones", "checked by NodeResourceTopologyMatch, which is on unless a profile disables it"
        yield "no report", _without_report(profile)
    yield "preempts", "yes" if "DefaultPreemption" in plugins.at[Point.POST_FILTER] else "no"
    left_out = [name for name in POINTS if not plugins.has(name)]
    if left_out:
        yield "left out", ", ".join(left_out)
    for plugin, args in profile.args.items():
        changed = [f"{name} {value}" for name, value in _changes(args, settings.defaults(plugin))]
        if changed:
            yield plugin, ", ".join(changed)


def _without_report(profile: Profile) -> str:
    from numalign.api.schedulerconfig.plugins import NUMALIGN
    from numalign.scheduler import settings

    own = profile.args.get(NUMALIGN)
    if not isinstance(own, settings.NumalignArgs) or own.flavour == "reference":
        return "nodes without a topology report are allowed, as the Go plugin does"
    match own.nodes_without_report:
        case "allow":
            return "nodes without a topology report are allowed"
        case "refuse":
            return "nodes without a topology report are refused to pods that a kubelet may align"
        case _:
            grace = fields.duration_text(own.first_report_grace_period)
            return f"pods that a kubelet may align wait up to {grace} for the first topology report of a Ready node"


def _changes(args: Struct, default: Struct | None) -> Iterator[tuple[str, str]]:
    """Settings that are not as by default, as paths and short text."""
    for field in structs.fields(args):
        value, usual = getattr(args, field.name), getattr(default, field.name, None)
        if value == usual or value is None:
            continue
        if isinstance(value, Struct):
            yield from ((f"{field.encode_name}.{name}", text) for name, text in _changes(value, usual))
        else:
            yield field.encode_name, _short(_plain(value))


def _short(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_short, value)) + "]"
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{name} {_short(each)}" for name, each in value.items() if each not in (None, [], {}))
            + "}"
        )
    return str(value).lower() if isinstance(value, bool) else str(value)


def _plain(thing: Any) -> Any:
    if isinstance(thing, Struct):
        return {field.encode_name: _plain(getattr(thing, field.name)) for field in structs.fields(thing)}
    if isinstance(thing, Mapping):
        return {str(name): _plain(value) for name, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [_plain(each) for each in thing]
    return thing.value if isinstance(thing, Enum) else thing


def _grid(lines: Iterator[Line]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in lines:
        grid.add_row(label, text)
    return grid


def verbosity(answer: Mapping[str, Any]) -> str:
    """What /debug/flags/v says."""
    page = formats.Page()
    page.add(f"verbosity {answer['verbosity']}; 4 and above is debug")
    if answer["rules"]:
        page.add()
        table = page.table("VERBOSITY", "COMPONENT", "POD", "NODE", "LEFT")
        for rule in answer["rules"]:
            cells = (output.printable(str(rule[name])) or "*" for name in ("verbosity", "component", "pod", "node"))
            table.add_row(*cells, f"{rule['secondsLeft']}s")
        page.add(table)
    return page.text()
