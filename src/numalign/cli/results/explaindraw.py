"""Draws an explanation: the pod, the causes with their nodes, the closest node zone by zone, and what would help.

It draws from the output structs of `explanation`. Thousands of nodes are summed up by cause; single nodes are lines of
text, because rich lays out long tables slowly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import structs
from rich.table import Table
from rich.text import Text

from numalign.cli import output
from numalign.cli.display import formats, matrix
from numalign.cli.display.formats import INDENT, Page
from numalign.cli.display.values import Zones
from numalign.cli.results.explanation import (
    EXAMPLES,
    CauseOutput,
    ExplainOutput,
    NodeOutput,
    NodesOutput,
    PlacementOutput,
    PodOutput,
)
from numalign.placement.explain.nodeview import ContainerDecision

STYLES = {
    "running": "bold green",
    "bound": "bold green",
    "decided": "bold green",
    "succeeded": "green",
    "waiting": "bold yellow",
    "gated": "bold yellow",
    "rejected": "bold red",
    "failed": "bold red",
}
MOST_NODES = 5
MOST_NAMES = 8
MOST_CAUSES = 12


def drawn(answer: ExplainOutput, *, every: bool = False) -> str:
    """`every`: single nodes are listed."""
    page, last = Page(), Page()
    draw(page, answer)
    if answer.asked is None:
        return page.text()
    nodes = [output.printable(f"{each.node}: {each.why or 'fits'}") for each in answer.asked.answers] if every else []
    help = _help(answer, answer.asked)
    if help:
        last.add(Text(sentence(help), "bold"))
    return "\n".join([page.text(), *(["", *nodes] if nodes else []), *(["", last.text()] if help else [])])


def _help(answer: ExplainOutput, asked: NodesOutput) -> str:
    """The last line; of several copies that preempt, `_copies` has named the victims."""
    if not answer.preemptions or (answer.copies > 1 and not answer.fits):
        return asked.help
    return answer.preemptions[0].text if answer.copies == 1 else ""


def draw(page: Page, answer: ExplainOutput) -> None:
    """Adds everything except what would help."""
    _pod(page, answer)
    if answer.asked is not None:
        page.add()
        _copies(page, answer)
        _asked(page, answer.asked, "without preemption, " if answer.preemptions else "")


def short(page: Page, asked: NodesOutput) -> None:
    """The causes, and what would help."""
    page.add()
    page.add(causes(page, asked.causes), indent=INDENT)
    page.add()
    page.add(Text(sentence(asked.help), "bold"), indent=INDENT)


def sentence(help: str) -> str:
    help = output.printable(help)
    return f"It {help}." if help.startswith(("would", "will")) else f"{help[:1].upper()}{help[1:]}."


def causes(page: Page, found: Sequence[CauseOutput]) -> Table:
    """A line per sentence, the most frequent first."""
    table = page.table("nodes", "why", "which")
    table.columns[0].justify = "right"
    answer = _by_sentence(found)
    for each in answer[:MOST_CAUSES]:
        table.add_row(f"{each.nodes:,}", output.printable(each.why), few(each.examples, each.nodes))
    rest = answer[MOST_CAUSES:]
    if rest:
        table.add_row(f"{sum(each.nodes for each in rest):,}", f"for {len(rest)} other reasons", _some(rest))
    return table


def _by_sentence(found: Sequence[CauseOutput]) -> list[CauseOutput]:
    """Joins causes that read the same, although their codes differ."""
    joined: dict[str, CauseOutput] = {}
    for each in found:
        known = joined.setdefault(each.why, each)
        if known is not each:
            examples = (*known.examples, *each.examples)[:EXAMPLES]
            joined[each.why] = structs.replace(known, nodes=known.nodes + each.nodes, examples=examples)
    return sorted(joined.values(), key=lambda each: -each.nodes)


def few(names: Sequence[str], count: int) -> str:
    """The first names, and how many more there are."""
    more = count - len(names)
    return output.printable(", ".join(names)) + (f" and {more:,} more" if more > 0 else "")


def decided(decision: ContainerDecision) -> str:
    """What the scheduler decided for a container, beside what the agent says of it."""
    cpus = f"CPUs {decision.cpus}" if decision.cpus else "the shared pools of its zones"
    mems = f", memory in NUMA {decision.mems}" if decision.mems else ""
    devices = "".join(f", {output.printable(each)}" for each in decision.devices)
    if decision.is_applied is None:
        outcome = "not acknowledged by the agent"
    else:
        outcome = f"applied, CPUs {decision.cpus_in_effect}" if decision.is_applied else f"failed: {decision.failure}"
    return f"{decision.container}: {cpus}{mems}{devices}; {outcome}"


def placement(placed: PlacementOutput) -> str:
    """Zones by container, in one line."""
    if placed.unreported and not placed.containers:
        blindly = ", and the pod was placed without topology data" if placed.placed_blindly else ""
        return f"not known: the node has no topology report{blindly}"
    if len(placed.possible) > 1 and not placed.containers:
        return f"{_choices([(zone,) for zone in placed.possible])}, not reported"
    if not placed.containers:
        return "no zone of its own"
    by_zones: dict[tuple[Zones, ...], list[str]] = {}
    for name, sets in placed.containers.items():
        by_zones.setdefault(tuple(sets), []).append(name)
    parts = [f"{few(names[:MOST_NAMES], len(names))} in {_choices(sets)}" for sets, names in by_zones.items()]
    return f"{'; '.join(parts)} ({placed.source})"


def _pod(page: Page, answer: ExplainOutput) -> None:
    pod = answer.pod
    stage = Text(pod.stage, STYLES[pod.stage]) if pod.stage else Text("")
    page.add(Text.assemble((output.printable(formats.pod(pod.full_name)), "bold"), "  ", stage))
    lines = formats.labelled()
    for label, text in _lines(answer):
        lines.add_row(label, Text(output.printable(text)))
    page.add(lines, indent=INDENT)


def _lines(answer: ExplainOutput) -> Iterator[tuple[str, str]]:
    pod = answer.pod
    wants = {resource: amount for resource, amount in pod.requests.items() if amount}
    yield "asks for", f"{formats.wants(wants)} ({pod.qos_class})"
    yield from _scheduler(answer)
    yield from _eviction(pod)
    if pod.gates:
        yield "gated by", f"{', '.join(pod.gates)}; no scheduler looks at it before that is removed"
    if pod.placed is not None:
        yield "node", pod.placed.node
        yield from _held(pod, pod.placed)
    elif answer.chosen is not None and answer.copies == 1:
        later = ", once pods there are preempted" if answer.preemptions else ""
        yield "would go to", f"{answer.chosen.node}{later}; {placement(answer.chosen)}"
    if pod.reason or pod.message:
        yield "it says", ": ".join(filter(None, (pod.reason, pod.message)))
    if pod.final:
        yield "final", pod.final
    if pod.taken_by:
        taken = few(pod.taken_by[:MOST_NAMES], len(pod.taken_by))
        yield "room", f"other schedulers bound pods to {pod.placed.node if pod.placed else 'the node'} then: {taken}"


def _scheduler(answer: ExplainOutput) -> Iterator[tuple[str, str]]:
    """What comes before all answers of nodes."""
    pod, asked = answer.pod, answer.asked
    if pod.unattended:
        yield "scheduler", pod.unattended
    if asked is not None and pod.stage is not None and pod.scheduler != asked.profile:
        yield "note", f"the pod names scheduler {pod.scheduler}; what follows is what {asked.profile} would say"
    if asked is not None and asked.never:
        yield "never fits", asked.never


def _eviction(pod: PodOutput) -> Iterator[tuple[str, str]]:
    if pod.preempted:
        yield "note", "it is evicted for a pod of higher priority, and has not ended yet"
    elif pod.leaving:
        yield "note", "it was deleted, and has not ended yet"
    if pod.nominated:
        going = few(pod.evicted[:MOST_NAMES], len(pod.evicted)) if pod.evicted else "all of them have ended"
        yield "preempts", f"pods of lower priority on {pod.nominated} are evicted for it: {going}"


def _held(pod: PodOutput, placed: PlacementOutput) -> Iterator[tuple[str, str]]:
    if pod.stage in ("rejected", "failed", "succeeded"):
        return
    yield "zones", placement(placed)
    for decision in placed.decisions:
        yield "decided", decided(decision)
    by_zones: dict[Zones, dict[str, float]] = {}
    for each in placed.holds:
        into = by_zones.setdefault(tuple(each.zones), {})
        into[each.resource] = into.get(each.resource, 0) + each.amount
    for zones, held in by_zones.items():
        yield "holds", f"{formats.wants(held)} in {formats.zones(zones)}"


def _copies(page: Page, answer: ExplainOutput) -> None:
    if answer.copies == 1:
        return
    placed = sum(answer.placed.values())
    page.add(f"{placed:,} of {answer.copies:,} pods find a node{': ' if placed else ''}{_nodes(answer.placed)}")
    for each in answer.preemptions:
        page.add(each.text, indent=INDENT)
    if placed < answer.copies:
        page.add(f"pod {formats.pod(answer.pod.full_name)} finds none:")


def _nodes(placed: Mapping[str, int]) -> str:
    most = sorted(placed.items(), key=lambda each: (-each[1], each[0]))
    return few([f"{node} {count}" for node, count in most[:MOST_NODES]], len(most))


def _asked(page: Page, asked: NodesOutput, but: str) -> None:
    page.add(f"{but}{asked.headline}")
    both = [*asked.fitting, *asked.untried]
    if both:
        page.add(f"it fits on {few(both[:MOST_NODES], len(both))}", indent=INDENT)
    if asked.causes:
        page.add()
        page.add(causes(page, asked.causes), indent=INDENT)
    if not asked.fits:
        for each in asked.closest:
            _closest(page, each)
    if asked.notes:
        page.add()
        for note in asked.notes:
            page.add(f"note: {note}", indent=INDENT)


def _closest(page: Page, node: NodeOutput) -> None:
    if not node.lacks:
        return
    page.add()
    rules = f" ({node.policy}, scope {node.scope})" if node.policy else ""
    page.add(f"{'even when empty, the best is' if node.never else 'closest is'} {node.node}{rules}:")
    page.add(matrix.lacks(page, node.lacks, empty=node.never), indent=INDENT)


def _choices(sets: Sequence[Zones]) -> str:
    return formats.zones(sets[0]) if len(sets) == 1 else formats.choices(sets)


def _some(rest: Sequence[CauseOutput]) -> str:
    names = [name for each in rest for name in each.examples]
    return few(names[:MOST_NODES], sum(each.nodes for each in rest))
