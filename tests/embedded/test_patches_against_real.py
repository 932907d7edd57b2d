"""The same random patches to our functions and to a real kube-apiserver: objects, books and refusals have to agree.

Every step starts from what the real server holds, so that one difference does not become many. What the real server
fills in by itself (defaults) is not the matter of patches and left aside."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from numalign.api.decode import decode
from numalign.simulator.apiserver.patches import ApplyConflict, BadPatch, apply, jsonpatch, strategic, typed
from numalign.simulator.apiserver.patches.apply import FieldManager
from numalign.simulator.apiserver.schemas import builtin, registry, structural, typedefs
from numalign.simulator.apiserver.schemas.structural import StructuralSchema
from tests.embedded import definitions
from tests.embedded.patchstories import MANAGERS, STORIES, Story
from tests.embedded.realserver import RealServer

IDENTITY = ("manager", "operation", "apiVersion", "subresource")
NOW = "2026-11-16T05:00:00Z"
DEFAULTS = """
    uid resourceVersion creationTimestamp generation namespace status protocol resources terminationMessagePath
    terminationMessagePolicy imagePullPolicy restartPolicy terminationGracePeriodSeconds dnsPolicy securityContext
    schedulerName strategy type rollingUpdate maxSurge maxUnavailable revisionHistoryLimit progressDeadlineSeconds
    enableServiceLinks preemptionPolicy priority requests cpu defaultMode replicas observedGeneration qosClass phase
    tolerations template spec
"""


def schema_of(story: Story) -> StructuralSchema | None:
    for crd in (definitions.REPORTS, definitions.THINGS):
        for custom in registry.custom_resources(registry.completed_definition(crd, None, NOW)):
            if (custom.resource.group, custom.resource.version, custom.resource.kind) == story.kind:
                return custom.schema
    return None


class Step:
    """One patch, sent to both sides."""

    def __init__(self, story: Story, chance: Random) -> None:
        self.story = story
        self.part = chance.choice(story.parts)
        self.way = "apply" if chance.random() < 0.6 else chance.choice(story.ways)
        self.manager = chance.choice(MANAGERS)
        self.force = chance.random() < 0.5
        self.body = story.patch(chance, self.way, self.part)
        self.schema = schema_of(story)
        shape = self.schema.typedef if self.schema else builtin.typedef(story.kind)
        assert shape is not None
        self.shape = shape

    def __repr__(self) -> str:
        return f"{self.way} {self.part} by {self.manager} force={self.force}: {self.body}"

    def theirs(self, server: RealServer) -> tuple[int, Any]:
        part = f"/{self.part}" if self.part else ""
        force = "&force=true" if self.force and self.way == "apply" else ""
        path = f"{self.story.path}/story{part}?fieldManager={self.manager}{force}"
        return server.patch(self.way, path, self.body)

    def ours(self, live: Any) -> Any:
        """The object without its books being kept, unless by apply."""
        kind = self.story.kind
        if self.way == "apply":
            return self.fields().apply(live, self.body, self.manager, force=self.force)
        if self.way == "strategic":
            return strategic.applied(live, self.body, kind)
        return jsonpatch.applied(live, self.body) if self.way == "json" else decode.merge_patch(live, self.body)

    def tracked(self, live: Any, after: Any) -> Any:
        metadata = {key: value for key, value in after["metadata"].items() if key != "managedFields"}
        return self.fields().update(live, {**after, "metadata": metadata}, self.manager)

    def fields(self) -> FieldManager:
        return FieldManager(self.story.kind, NOW, self.part, self.schema)


def books(tree: Any) -> list[Any]:
    """Without times, but with whether there is one."""
    entries = tree["metadata"].get("managedFields") or []
    shown = [{**entry, "time": "time" in entry} for entry in entries]
    return sorted(shown, key=lambda entry: [entry.get(key, "") for key in IDENTITY])


def fitted(step: Step, tree: Any, live: Any) -> Any:
    """What becomes of a patched object before it is stored, as far as it is no default."""
    other = {"": "status", "status": "spec"}[step.part]
    tree = (
        typedefs.without_empty(tree, step.shape) if step.schema is None else structural.admitted(step.schema, tree)[0]
    )
    if step.schema is None or step.schema.has_status_subresource:
        tree = {key: value for key, value in tree.items() if key != other}
        tree |= {other: live[other]} if other in live else {}
    return tree


def differences(step: Step, live: Any, ours: Any, theirs: Any) -> list[Any]:
    one, other = (
        {**tree, "metadata": {key: value for key, value in tree["metadata"].items() if key != "managedFields"}}
        for tree in (fitted(step, ours, live), theirs)
    )
    if step.part == "status":
        # Metadata follows rules of its own on this path, which are the server's.
        one, other = ({"status": tree.get("status", {})} for tree in (one, other))
    found = typed.compare(one, other, step.shape)
    added = [path for path in found.added if not any(each[2:] in DEFAULTS.split() for each in path)]
    changed = found.modified | found.removed
    return added + [path for path in changed if path[-1][2:] not in ("generation", "resourceVersion")]


def compared(step: Step, server: RealServer) -> list[Any]:
    """What differs; a refusal by the rules of the kind is nobody's patch."""
    live = server.call("GET", f"{step.story.path}/story")[1]
    code, theirs = step.theirs(server)
    try:
        ours = step.ours(live if code != 201 else None)
    except BadPatch as refused:
        return unlike((refused.code, refused.message), (code, theirs.get("message")))
    except ApplyConflict as refused:
        causes = {(each.field, f"conflict with {each.manager}") for each in refused.causes}
        said = {(each["field"], each["message"]) for each in theirs.get("details", {}).get("causes", ())}
        return unlike((409, refused.message, causes), (code, theirs.get("message"), said))
    if code > 299:
        is_about_patch = code in (409, 500) or theirs["message"].startswith("the server rejected")
        return [theirs["message"]] if is_about_patch else []
    if step.way != "apply":
        return differences(step, live, ours, theirs) + unlike(books(step.tracked(live, theirs)), books(theirs))
    return differences(step, live, ours, theirs) + unlike(
        books(apply.unless_only_times_differ(live, ours)), books(theirs)
    )


def unlike(ours: Any, theirs: Any) -> list[Any]:
    return [] if ours == theirs else [ours, theirs]


def told(server: RealServer, story: Story, seed: int, steps: int) -> int:
    """Tells a story from its seed; the number of steps that counted."""
    chance = Random(seed)
    address = f"{story.path}/story"
    gone = [{"op": "remove", "path": "/metadata/finalizers"}]
    server.patch("json", address, gone)
    server.call("DELETE", f"{address}?gracePeriodSeconds=0")
    while True:
        code, _ = server.patch("apply", f"{address}?fieldManager=ann", story.wanted(chance, ""))
        if code == 201:
            break
    for number in range(steps):
        if chance.random() < 0.03:
            # From here on the books begin anew, with what is there credited to nobody in particular.
            server.patch("merge", address, {"metadata": {"managedFields": [{}]}})
        step = Step(story, chance)
        found = compared(step, server)
        assert found == [], f"seed {seed}, step {number}: {step}: {found}"
    return steps


@pytest.mark.slow
@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_patches_agree_with_the_real_server(real_server: RealServer, story: Story) -> None:
    for seed in range(10):
        told(real_server, story, seed, steps=40)
