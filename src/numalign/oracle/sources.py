"""The real components that can be asked: `kubelet@1.36`, `reference`, `scheduler`, `rte`, `nfd`.

`numalign oracle` reads their names. A source combines what a campaign needs: the lab's oracle program, the generator
and the shrinker of its cases, and the judge of our answers."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from msgspec import Struct

from numalign.api.errors import BadObject
from numalign.kubelet.versions import Minor
from numalign.lab import build
from numalign.oracle.harness.ask import Judge
from numalign.oracle.harness.divergence import Case
from numalign.oracle.harness.shrink import Smaller
from numalign.oracle.kubelet import replay as kubelet_replay
from numalign.oracle.kubelet import shrink as kubelet_shrink
from numalign.oracle.kubelet.generate import cases as kubelet_cases
from numalign.oracle.kubescheduler import judge as scheduler_judge
from numalign.oracle.kubescheduler.generate import cases as scheduler_cases
from numalign.oracle.plugin import judge as plugin_judge
from numalign.oracle.plugin.generate import histories
from numalign.oracle.publishers import cases as publisher_rows

NEWEST = max(build.ORACLE_MINORS, key=lambda text: int(text.split(".")[1]))
REFERENCE = "reference"
SCHEDULER = "scheduler"
PUBLISHERS = ("rte", "nfd")


class Source(Struct, frozen=True, kw_only=True):
    """One real component and everything needed to ask it."""

    version: str
    """A kubelet's minor, or the component's name. Disagreements are saved under it."""
    binary: build.Binary
    draw: Callable[[int, int], tuple[str, Case]]
    """Family and case of a seed and a number."""
    smaller: Smaller
    judge: Judge
    chunk: int = 500
    """Cases per chunk: one to a few seconds of work."""

    def program(self) -> Path:
        """The oracle program, built if it is missing."""
        (built,) = build.build([self.binary], lambda _: None)
        return built.path

    def ready(self) -> bool:
        return build.found() and build.locate(self.binary, build.version_text(build.go())).exists()


class KubeletSource(Source, frozen=True, kw_only=True):
    """The kubelet's managers of one minor."""

    minor: Minor


def of(text: str) -> Source:
    """Parse `kubelet`, `kubelet@1.36`, `reference`, `scheduler`, `rte` or `nfd`."""
    if text == REFERENCE:
        return reference()
    if text in PUBLISHERS:
        return publisher(text)
    return scheduler() if text == SCHEDULER else kubelet(text, others=(REFERENCE, SCHEDULER, *PUBLISHERS))


def kubelet(text: str, others: tuple[str, ...] = ()) -> KubeletSource:
    """Parse `kubelet` (the newest minor with an oracle program) or `kubelet@1.36`."""
    name, _, version = text.partition("@")
    if name != "kubelet" or (version or NEWEST) not in build.ORACLE_MINORS:
        known = ", ".join((*(f"kubelet@{minor}" for minor in build.ORACLE_MINORS), *others))
        raise BadObject("Oracle", text, "against", f"unknown; known are kubelet and {known}")
    version = version or NEWEST
    (binary,) = build.chosen([f"oracle-kubelet-{version}"])
    minor = Minor(*map(int, version.split(".")))
    return KubeletSource(
        version=version,
        binary=binary,
        draw=partial(kubelet_cases.draw, minor=minor),
        smaller=kubelet_shrink.smaller,
        judge=partial(kubelet_replay.judge_case, minor=minor),
        minor=minor,
    )


def reference() -> Source:
    """The NodeResourceTopologyMatch plugin of scheduler-plugins."""
    (binary,) = build.chosen(["oracle-reference"])
    return Source(
        version=REFERENCE, binary=binary, draw=histories.draw, smaller=histories.smaller, judge=plugin_judge.judge
    )


def scheduler() -> Source:
    """The plugins of kube-scheduler's default profile."""
    (binary,) = build.chosen(["oracle-scheduler"])
    return Source(
        version=SCHEDULER,
        binary=binary,
        draw=scheduler_cases.draw,
        smaller=scheduler_cases.smaller,
        judge=scheduler_judge.judge,
        chunk=20,
    )


def publisher(name: str) -> Source:
    """A topology publisher: the resource topology exporter (rte), or NFD's topology updater (nfd)."""
    (binary,) = build.chosen(["oracle-exporter"])
    return Source(
        version=name,
        binary=binary,
        draw=partial(publisher_rows.draw, program=name),
        smaller=publisher_rows.smaller,
        judge=publisher_rows.judge,
    )
