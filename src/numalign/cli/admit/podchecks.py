"""What the API server would refuse about a pod, as far as names and amounts go.

`podfiles` asks before a pod from a file meets the model: a kubelet never sees such a pod, so any answer about it would
be wrong. The pod has its defaults already. Rules that do not touch admission on the node (images, volumes,
probes) are not looked at."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from numalign.api import errors
from numalign.api.decode import quantity
from numalign.api.decode.quantity import Quantity
from numalign.api.objects import requests, resourcenames
from numalign.api.objects.pod import Container, Pod, PodSpec, ResourceList, ResourceRequirements

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
MAX_NAME = 253
NATIVE = (resourcenames.CPU, resourcenames.MEMORY, "ephemeral-storage")

LABEL_HELP = "write lower case letters, digits and -, at most 63, a letter or digit first and last"
NAME_HELP = "write lower case letters, digits, - and ., at most 253, a letter or digit first and last"


class Problem(NamedTuple):
    """A field of the pod, what is wrong with it and what to do."""

    field: str
    why: str


def problems(pod: Pod) -> Iterator[Problem]:
    """Everything that the API server would refuse, in the order of the file."""
    yield from _metadata(pod)
    yield from _containers(pod)
    yield from _negative(pod.spec.overhead, "spec.overhead")
    yield from _requirements(pod.spec.resources, "spec.resources", _pod_level_name)
    yield from _consistency(pod)


def _metadata(pod: Pod) -> Iterator[Problem]:
    name, namespace = pod.metadata.name, pod.metadata.namespace
    if not name:
        yield Problem("metadata.name", "missing; give the pod a name")
    elif len(name) > MAX_NAME or not SUBDOMAIN.fullmatch(name):
        yield Problem("metadata.name", f"{errors.echo(name)} cannot be a pod's name; {NAME_HELP}")
    if not LABEL.fullmatch(namespace):
        yield Problem("metadata.namespace", f"{errors.echo(namespace)} cannot be a namespace; {LABEL_HELP}")


def _containers(pod: Pod) -> Iterator[Problem]:
    if not pod.spec.containers:
        yield Problem("spec.containers", "missing; a pod has one container or more")
    names: dict[str, str] = {}
    for path, container in _with_paths(pod):
        if not LABEL.fullmatch(container.name):
            name = errors.echo(container.name)
            yield Problem(f"{path}.name", f"{name} cannot be a container's name; {LABEL_HELP}")
        if container.name in names:
            yield Problem(f"{path}.name", f"{names[container.name]} has the same name; give each its own")
        names[container.name] = path
        yield from _requirements(container.resources, f"{path}.resources", _container_name)


def _with_paths(pod: Pod) -> Iterator[tuple[str, Container]]:
    for index, container in enumerate(pod.spec.init_containers):
        yield f"spec.initContainers[{index}]", container
    for index, container in enumerate(pod.spec.containers):
        yield f"spec.containers[{index}]", container


def _requirements(
    resources: ResourceRequirements, path: str, bad_name: Callable[[str], str | None]
) -> Iterator[Problem]:
    for part, amounts in (("limits", resources.limits), ("requests", resources.requests)):
        for name, amount in amounts.items():
            why = bad_name(name) or _bad_amount(name, amount)
            if why:
                yield Problem(f"{path}.{part}[{errors.clipped(name)}]", why)
    for name, amount in resources.requests.items():
        why = _bad_request(name, amount, resources.limits.get(name))
        if why:
            yield Problem(f"{path}.requests[{errors.clipped(name)}]", why)
    named = resources.requests.keys() | resources.limits.keys()
    if any(map(resourcenames.is_hugepages, named)) and not named & {resourcenames.CPU, resourcenames.MEMORY}:
        yield Problem(path, "hugepages need cpu or memory beside them; add one")


def _container_name(name: str) -> str | None:
    if name in NATIVE or resourcenames.is_extended(name):
        return None
    if resourcenames.is_hugepages(name):
        return None if _page_size(name) else "no page size; write a name like hugepages-2Mi"
    if "/" in name and resourcenames.is_native(name) and resourcenames.QUALIFIED.fullmatch(name):
        return None
    return f"not a resource; write {', '.join(NATIVE)}, hugepages-<size> or a name like example.com/nic"


def _pod_level_name(name: str) -> str | None:
    if resourcenames.is_pod_level(name):
        return _container_name(name)
    return "not a resource of whole pods; only cpu, memory and hugepages are"


def _page_size(name: str) -> int:
    try:
        size = quantity.parse(name.removeprefix(resourcenames.HUGEPAGES_PREFIX))
    except quantity.QuantityError:
        return 0
    return max(0, size.value)


def _bad_amount(name: str, amount: Quantity) -> str | None:
    if amount < quantity.ZERO:
        return f"{amount} is negative; write zero or more"
    if resourcenames.is_extended(name) and not amount.is_whole:
        return f"{amount} is not a whole number, and {name} cannot be divided; write one"
    if resourcenames.is_hugepages(name) and amount.value % _page_size(name):
        return f"{amount} is not a multiple of the page size; write one"
    return None


def _bad_request(name: str, request: Quantity, limit: Quantity | None) -> str | None:
    overcommits = resourcenames.is_native(name) and not resourcenames.is_hugepages(name)
    if limit is None:
        return None if overcommits else f"{name} needs a limit of the same amount; add it"
    if request != limit and not overcommits:
        return f"{request} differs from the limit of {limit}; for {name} both must be equal"
    if request > limit:
        return f"{request} is more than the limit of {limit}; lower it or raise the limit"
    return None


def _negative(amounts: ResourceList, path: str) -> Iterator[Problem]:
    for name, amount in amounts.items():
        if amount < quantity.ZERO:
            yield Problem(f"{path}[{errors.clipped(name)}]", f"{amount} is negative; write zero or more")


def _consistency(pod: Pod) -> Iterator[Problem]:
    """Pod-level amounts cover what the containers ask for; `effective` without them is what the containers come to."""
    whole = pod.spec.resources
    for name, asked in requests.effective(_containers_only(pod)).items():
        if name in whole.requests and asked > whole.requests[name]:
            why = f"{whole.requests[name]} is less than the containers' {asked} together; raise it"
            yield Problem(f"spec.resources.requests[{name}]", why)
    for path, container in _with_paths(pod):
        for name, limit in container.resources.limits.items():
            if name in whole.limits and limit > whole.limits[name]:
                why = f"{limit} is more than the pod's limit of {whole.limits[name]}; lower it"
                yield Problem(f"{path}.resources.limits[{name}]", why)


def _containers_only(pod: Pod) -> Pod:
    return Pod(spec=PodSpec(containers=pod.spec.containers, init_containers=pod.spec.init_containers))
