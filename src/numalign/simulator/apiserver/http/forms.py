"""Stored objects as the bodies of answers, in the form that was asked for.

One object or a list of them, plain from the very bytes that are kept, or as tables, metadata and YAML made for this
answer."""

from collections.abc import Sequence
from typing import Any, Literal

import yaml

from numalign.simulator import trees
from numalign.simulator.apiserver.http import negotiation
from numalign.simulator.apiserver.http.calls import Request, Response
from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.apiserver.storage.ring import StoredObject
from numalign.simulator.apiserver.storage.state import ServerState
from numalign.simulator.apiserver.tables import tables
from numalign.simulator.apiserver.verbs import scale, show
from numalign.simulator.apiserver.verbs.list import ListPage
from numalign.simulator.trees import Tree

PARTIAL: Tree = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
Include = Literal["Metadata", "Object", "None"]


def one(state: ServerState, request: Request, resource: Resource, entry: StoredObject, code: int = 200) -> Response:
    data = show.shown(resource, entry.data)
    form = negotiation.form(request.accept)
    if form == "plain":
        return Response(code, data)
    tree = trees.decoded(data)
    if form == "yaml":
        return as_yaml(tree, code)
    if form == "table":
        return Response(code, trees.encoded(table(state, resource, [tree], include=include(request.query))))
    if form == "partial list":
        kind = f"*{resource.group or 'core'}.{resource.kind}"
        raise negotiation.not_acceptable(
            f"you requested PartialObjectMetadataList, but the requested object is not a list ({kind})"
        )
    return Response(code, trees.encoded(partial(tree)))


def several(state: ServerState, request: Request, resource: Resource, page: ListPage) -> Response:
    form, metadata = negotiation.form(request.accept), _list_metadata(page)
    if form == "plain":
        return Response(200, _joined(resource, metadata, page.entries))
    items = [trees.decoded(show.shown(resource, entry.data)) for entry in page.entries]
    if form == "table":
        made = table(state, resource, items, include=include(request.query), metadata=metadata)
        return Response(200, trees.encoded(made))
    if form == "partial":
        kind = f"*{resource.group or 'core'}.{resource.list_kind}"
        raise negotiation.not_acceptable(
            f"you requested PartialObjectMetadata, but the requested object is a list ({kind})"
        )
    if form == "partial list":
        head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
        return Response(200, trees.encoded(head | {"items": [partial(item) for item in items]}))
    head = {"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": metadata}
    return as_yaml(head | {"items": items})


def tree_answer(request: Request, tree: Tree, code: int = 200) -> Response:
    """Of something that is not stored: a review."""
    return as_yaml(tree, code) if negotiation.form(request.accept) == "yaml" else Response(code, trees.encoded(tree))


def scale_answer(state: ServerState, request: Request, tree: Tree) -> Response:
    if negotiation.form(request.accept) != "table":
        return tree_answer(request, tree)
    return Response(200, trees.encoded(table(state, scale.SCALE, [tree], include=include(request.query))))


def table(
    state: ServerState,
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


def as_yaml(tree: Any, code: int = 200) -> Response:
    return Response(code, yaml.safe_dump(tree, default_flow_style=False).encode(), "application/yaml")


def _list_metadata(page: ListPage) -> Tree:
    metadata: Tree = {"resourceVersion": str(page.version)}
    if page.token:
        metadata["continue"] = page.token
    if page.remaining:
        metadata["remainingItemCount"] = page.remaining
    return metadata


def _joined(resource: Resource, metadata: Tree, entries: Sequence[StoredObject]) -> bytes:
    head = f'{{"kind":"{resource.list_kind}","apiVersion":"{resource.api_version}","metadata":'.encode()
    items = b",".join([show.item(resource, entry.data) for entry in entries])
    return b"".join((head, trees.encoded(metadata), b',"items":[', items, b"]}"))
