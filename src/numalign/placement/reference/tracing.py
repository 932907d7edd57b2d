"""Traces of fingerprint checks, which show why a node's report was not accepted.

The over-reserving cache checks fingerprints; its owner may pass a sink and gets one trace per check. The JSON
and the text are the plugin's own (scheduler plugin spec 14.6), so that tools made for it read ours.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from numalign.api.nrt import fingerprint
from numalign.api.nrt.fingerprint import Pod


class Trace(Struct, frozen=True):
    """One check: the node, the pods in the order in which they were counted, and the fingerprint that was expected."""

    node: str
    pods: tuple[Pod, ...] = ()
    expected: str = ""

    @property
    def computed(self) -> str:
        return fingerprint.of(self.pods)


Sink = Callable[[Trace], None]


def plain(trace: Trace) -> dict[str, Any]:
    """The trace as JSON values; empty fields are omitted."""
    fields = {
        "fingerprintExpected": trace.expected,
        "fingerprintComputed": trace.computed,
        "pods": [{"Namespace": namespace, "Name": name} for namespace, name in trace.pods],
        "nodeName": trace.node,
    }
    return {key: value for key, value in fields.items() if value}


def text(trace: Trace) -> str:
    lines = [
        f'> processing node "{trace.node}"',
        f"> processing {len(trace.pods)} pods",
        *(f"+ {namespace}/{name}" for namespace, name in trace.pods),
        f"= {trace.computed}",
        *([f"V {trace.expected}"] if trace.expected else []),
    ]
    return "".join(f"{line}\n" for line in lines)


def deliver(trace: Trace, sink: Sink | None) -> None:
    if sink is not None:
        sink(trace)
