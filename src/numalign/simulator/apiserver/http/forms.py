"""Stored objects as the bodies of answers, in the form that was asked for.

One object or a list of them, plain from the very bytes that are kept, or as tables, metadata and YAML made for this
answer."""

from collections.abc import Sequence
from typing import Any, Literal

import yaml

from numalign.simulator import trees
from numalign.simulator.apiserver.http import negotiation
from numalign.simulator.apiserver.http.calls import Answer, Call
from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.apiserver.storage.ring import Entry
from numalign.simulator.apiserver.storage.state import State
from numalign.simulator.apiserver.tables import tables
from numalign.simulator.apiserver.verbs import scale, show
from numalign.simulator.apiserver.verbs.list import Page
from numalign.simulator.trees import Tree

PARTIAL: Tree = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
Include = Literal["Metadata", "Object", "None"]


def one(state: State, call: Call, resource: Resource, entry: Entry, code: int = 200) -> Answer:
    data = show.shown(resource, entry.data)
    form = negotiation.form(call.accept)
    if form == "plain":
        return Answer(code, data)
    tree = trees.decoded(data)
    if form == "yaml":
        return as_yaml(tree, code)
    if form == "table":
        return Answer(code, trees.encoded(table(state, resource, [tree], include=include(call.query))))
    if form == "partial list":
        kind = f"*{resource.group or 'core'}.{resource.kind}"
        raise negotiation.not_acceptable(
            f"you requested PartialObjectMetadataList, but the requested object is not a list ({kind})"
        )
    return Answer(code, trees.encoded(partial(tree)))


def several(state: State, call: Call, resource: Resource, page: Page) -> Answer:
    form, metadata = negotiation.form(call.accept), _list_metadata(page)
    if form == "plain":
        return Answer(200, _joined(resource, metadata, page.entries))
    items = [trees.decoded(show.shown(resource, entry.data)) for entry in page.entries]
    if form == "table":
        made = table(state, resource, items, include=include(call.query), metadata=metadata)
        return Answer(200, trees.encoded(made))
    if form == "partial":
        kind = f"*{resource.group or 'core'}.{resource.list_kind}"
        raise negotiation.not_acceptable(
            f"you requested PartialObjectMetadata, but the requested object is a list ({kind})"
        )
    if form == "partial list":
        head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
        return Answer(200, trees.encoded(head | {"items": [partial(item) for item in items]}))
    head = {"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": metadata}
    return as_yaml(head | {"items": items})


def tree_answer(call: Call, tree: Tree, code: int = 200) -> Answer:
    """Of something that is not stored: a review."""
    return as_yaml(tree, code) if negotiation.form(call.accept) == "yaml" else Answer(code, trees.encoded(tree))


def scale_answer(state: State, call: Call, tree: Tree) -> Answer:
    if negotiation.form(call.accept) != "table":
        return tree_answer(call, tree)
    return Answer(200, trees.encoded(table(state, scale.SCALE, [tree], include=include(call.query))))


def table(
    state: State,
    resource: Resource,
    items: Sequence[Tree],
    *,
    include: Include = "Metadata",
    metadata: Tree | None = None,
    headers: bool = True,
) -> Tree:
    custom = state.registry.custom(resource)
    return tables.table(
        resource,
        items,
        now=state.clock.wall(),
        columns=custom.columns if custom is not None else None,
        headers=headers,
        include=include,
        metadata=metadata,
    )


def include(query: dict[str, str]) -> Include:
    found = query.get("includeObject", "")
    return "Object" if found == "Object" else "None" if found == "None" else "Metadata"


def partial(tree: Tree) -> Tree:
    return PARTIAL | {"metadata": tree["metadata"]}


def as_yaml(tree: Any, code: int = 200) -> Answer:
    return Answer(code, yaml.safe_dump(tree, default_flow_style=False).encode(), "application/yaml")


def _list_metadata(page: Page) -> Tree:
    metadata: Tree = {"resourceVersion": str(page.version)}
    if page.token:
        metadata["continue"] = page.token
    if page.remaining:
        metadata["remainingItemCount"] = page.remaining
    return metadata


def _joined(resource: Resource, metadata: Tree, entries: Sequence[Entry]) -> bytes:
    head = f'{{"kind":"{resource.list_kind}","apiVersion":"{resource.api_version}","metadata":'.encode()
    items = b",".join([show.item(resource, entry.data) for entry in entries])
    return b"".join((head, trees.encoded(metadata), b',"items":[', items, b"]}"))
