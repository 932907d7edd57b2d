"""Discovery of groups, versions and resources, as the older lists and as aggregated discovery.

`nonresource` calls `document` with the path and the Accept header of a request below /api or /apis and the resources
that are served. Older clients read one list after another; kubectl reads everything at once. The entity tag lets a
client keep a document that it has."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from numalign.process.http.messages import JSON
from numalign.simulator import trees
from numalign.simulator.apiserver.storage.resources import GroupVersionKind, Resource
from numalign.simulator.trees import Tree

AGGREGATED: Final = re.compile(
    r"application/json\s*;(?=[^,]*\bg=apidiscovery\.k8s\.io)(?=[^,]*\bas=APIGroupDiscoveryList)[^,]*\bv=(v2beta1|v2)\b"
)
VERSION: Final = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")
MATURITY: Final = {None: 2, "beta": 1, "alpha": 0}

CHANGING: Final = ("get", "patch", "update")
# Subresources with a kind of their own, and their verbs.
FOREIGN: Final = {
    "scale": ("autoscaling", "v1", "Scale"),
    "eviction": ("policy", "v1", "Eviction"),
    "binding": ("", "v1", "Binding"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
}
VERBS: Final = {
    "eviction": ("create",),
    "binding": ("create",),
    "token": ("create",),
    "log": ("get",),
    "finalize": ("update",),
}


@dataclass(frozen=True)
class DiscoveryDocument:
    body: bytes
    content_type: str
    etag: str


def document(path: str, accept: str, resources: Iterable[Resource]) -> DiscoveryDocument | None:
    """The document at the path, or None."""
    served = list(resources)
    steps = path.strip("/").split("/")
    version = aggregation(accept) if len(steps) == 1 else ""
    if version:
        content_type = f"{JSON};g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
        return _document(aggregated(_below(steps[0], served), version), content_type)
    tree = _list(steps, served)
    return None if tree is None else _document(tree, JSON)


def aggregation(accept: str) -> str:
    """The version of aggregated discovery that the client prefers; empty if it prefers the older lists."""
    for choice in accept.split(","):
        match = AGGREGATED.match(choice.strip())
        if match:
            return match[1]
        if choice.strip() in (JSON, "*/*"):
            return ""
    return ""


def aggregated(resources: Sequence[Resource], version: str = "v2") -> Tree:
    items = [
        {
            "metadata": {"name": group} if group else {},
            "versions": [
                {
                    "version": each,
                    "resources": [_resource(resource) for resource in _of(resources, group, each)],
                    "freshness": "Current",
                }
                for each in _versions(resources, group)
            ],
        }
        for group in _groups(resources)
    ]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": items,
    }


def subresource_kind(resource: Resource, subresource: str) -> GroupVersionKind:
    return FOREIGN.get(subresource, resource.gvk)


def subresource_verbs(subresource: str) -> tuple[str, ...]:
    return VERBS.get(subresource, CHANGING)


def _document(tree: Tree, content_type: str) -> DiscoveryDocument:
    body = trees.encoded(tree)
    return DiscoveryDocument(body, content_type, f'"{hashlib.sha256(body).hexdigest().upper()}"')


def _list(steps: Sequence[str], served: Sequence[Resource]) -> Tree | None:
    below = _below(steps[0], served)
    match steps:
        case ["api"]:
            return {"kind": "APIVersions", "versions": _versions(below, ""), "serverAddressByClientCIDRs": []}
        case ["apis"]:
            groups = [_group(below, group) for group in _groups(below)]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        case ["apis", group] if group in _groups(below):
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(below, group)}
        case ["api", version]:
            return _resource_list(_of(below, "", version))
        case ["apis", group, version]:
            return _resource_list(_of(below, group, version))
    return None


def _below(root: str, served: Sequence[Resource]) -> list[Resource]:
    return [resource for resource in served if (root == "api") is (not resource.group)]


def _groups(resources: Sequence[Resource]) -> list[str]:
    return list(dict.fromkeys(resource.group for resource in resources))


def _versions(resources: Sequence[Resource], group: str) -> list[str]:
    """The preferred version first: stable before beta before alpha, and the higher number first."""
    versions = {resource.version for resource in resources if resource.group == group}
    return sorted(versions, key=_rank, reverse=True)


def _rank(version: str) -> tuple[int, int, int, str]:
    match = VERSION.fullmatch(version)
    if match is None:
        return -1, 0, 0, version
    return MATURITY[match[2]], int(match[1]), int(match[3] or 0), version


def _of(resources: Sequence[Resource], group: str, version: str) -> list[Resource]:
    here = [each for each in resources if (each.group, each.version) == (group, version)]
    return sorted(here, key=lambda each: each.plural)


def _group(resources: Sequence[Resource], group: str) -> Tree:
    versions = [{"groupVersion": f"{group}/{each}", "version": each} for each in _versions(resources, group)]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _resource(resource: Resource) -> Tree:
    tree: Tree = {
        "resource": resource.plural,
        "responseKind": _response_kind(resource.gvk),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    }
    subresources = [_subresource(resource, each) for each in sorted(resource.subresources)]
    return tree | _names(resource) | ({"subresources": subresources} if subresources else {})


def _subresource(resource: Resource, subresource: str) -> Tree:
    kind = _response_kind(subresource_kind(resource, subresource))
    return {"subresource": subresource, "responseKind": kind, "verbs": subresource_verbs(subresource)}


def _response_kind(kind: GroupVersionKind) -> Tree:
    return dict(zip(("group", "version", "kind"), kind, strict=True))


def _names(resource: Resource) -> Tree:
    found = {"shortNames": resource.short_names, "categories": resource.categories}
    return {key: value for key, value in found.items() if value}


def _resource_list(resources: Sequence[Resource]) -> Tree | None:
    if not resources:
        return None
    entries = [entry for resource in resources for entry in _entries(resource)]
    version = {"apiVersion": "v1"} if resources[0].group else {}
    return {"kind": "APIResourceList", **version, "groupVersion": resources[0].api_version, "resources": entries}


def _entries(resource: Resource) -> list[Tree]:
    whole: Tree = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": resource.verbs,
    }
    return [whole | _names(resource), *(_part_entry(resource, each) for each in sorted(resource.subresources))]


def _part_entry(resource: Resource, subresource: str) -> Tree:
    group, version, kind = subresource_kind(resource, subresource)
    entry: Tree = {"name": f"{resource.plural}/{subresource}", "singularName": "", "namespaced": resource.namespaced}
    # The group is named only if it differs from that of the list.
    foreign = {"group": group, "version": version} if group != resource.group else {}
    return entry | foreign | {"kind": kind, "verbs": subresource_verbs(subresource)}
