"""Response bodies: objects and lists as JSON, YAML, tables or metadata only, as the Accept header asks.

`routes` calls these for every verb. Plain JSON uses the stored bytes; the other forms are made for the response. The
Accept header lists forms by preference, most often with plain JSON last. The server never sends protobuf: a client that
accepts nothing else gets 406."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, Literal

import yaml

from numalign.process.http.messages import Request, Response
from numalign.simulator import trees
from numalign.simulator.apiserver.storage import errors
from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.apiserver.storage.store import StoredObject
from numalign.simulator.apiserver.tables import tables
from numalign.simulator.apiserver.tables.tables import Include
from numalign.simulator.apiserver.verbs import conversion, subresources
from numalign.simulator.apiserver.verbs.list import ListPage
from numalign.simulator.apiserver.verbs.state import ServerState
from numalign.simulator.trees import Tree

Form = Literal["plain", "table", "partial", "partial list", "yaml"]
JSON_TYPES: Final = ("", "*/*", "application/*", "application/json")
META_GROUP: Final = "meta.k8s.io"
TRANSFORMED: Final[dict[str, Form]] = {
    "Table": "table",
    "PartialObjectMetadata": "partial",
    "PartialObjectMetadataList": "partial list",
}
AVAILABLE: Final = (
    "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "
    "application/json;stream=watch"
)
ONLY: Final = "only the following media types are accepted: application/json, application/yaml"
PARTIAL: Tree = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}


@lru_cache(maxsize=256)
def negotiate(accept: str) -> Form:
    """The first form that the server supports; raises StatusError 406."""
    for choice in accept.split(","):
        found = _form(choice.strip())
        if found is not None:
            return found
    raise errors.not_acceptable(ONLY if "as=" in accept else AVAILABLE)


def _form(choice: str) -> Form | None:
    media, *parameters = (part.strip() for part in choice.split(";"))
    values = dict(part.partition("=")[::2] for part in parameters)
    if media == "application/yaml" and "as" not in values:
        return "yaml"
    if media not in JSON_TYPES:
        return None
    if "as" not in values:
        return "plain"
    if (values.get("g"), values.get("v")) != (META_GROUP, "v1"):
        return None
    return TRANSFORMED.get(values["as"])


def object_response(
    state: ServerState, request: Request, resource: Resource, entry: StoredObject, code: int = 200
) -> Response:
    data = conversion.to_version(resource, entry.data)
    form = negotiate(request.accept)
    if form == "plain":
        return Response(code, data)
    tree = trees.decoded(data)
    if form == "yaml":
        return yaml_response(tree, code)
    if form == "table":
        return Response(code, trees.encoded(table(state, resource, [tree], include=include_object(request.query))))
    if form == "partial list":
        kind = f"*{resource.group or 'core'}.{resource.kind}"
        raise errors.not_acceptable(
            f"you requested PartialObjectMetadataList, but the requested object is not a list ({kind})"
        )
    return Response(code, trees.encoded(partial_metadata(tree)))


def list_response(state: ServerState, request: Request, resource: Resource, page: ListPage) -> Response:
    form, metadata = negotiate(request.accept), _list_metadata(page)
    if form == "plain":
        return Response(200, _joined(resource, metadata, page.entries))
    items = [trees.decoded(conversion.to_version(resource, entry.data)) for entry in page.entries]
    if form == "table":
        made = table(state, resource, items, include=include_object(request.query), metadata=metadata)
        return Response(200, trees.encoded(made))
    if form == "partial":
        kind = f"*{resource.group or 'core'}.{resource.list_kind}"
        raise errors.not_acceptable(f"you requested PartialObjectMetadata, but the requested object is a list ({kind})")
    if form == "partial list":
        head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
        return Response(200, trees.encoded(head | {"items": [partial_metadata(item) for item in items]}))
    head = {"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": metadata}
    return yaml_response(head | {"items": items})


def tree_response(request: Request, tree: Tree, code: int = 200) -> Response:
    """The response for an object that is not stored: a review."""
    return yaml_response(tree, code) if negotiate(request.accept) == "yaml" else Response(code, trees.encoded(tree))


def scale_response(state: ServerState, request: Request, tree: Tree) -> Response:
    if negotiate(request.accept) != "table":
        return tree_response(request, tree)
    return Response(200, trees.encoded(table(state, subresources.SCALE, [tree], include=include_object(request.query))))


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


def include_object(query: dict[str, str]) -> Include:
    found = query.get("includeObject", "")
    return "Object" if found == "Object" else "None" if found == "None" else "Metadata"


def partial_metadata(tree: Tree) -> Tree:
    return PARTIAL | {"metadata": tree["metadata"]}


def yaml_response(tree: Any, code: int = 200) -> Response:
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
    items = b",".join([conversion.to_list_item(resource, entry.data) for entry in entries])
    return b"".join((head, trees.encoded(metadata), b',"items":[', items, b"]}"))
