"""Validates containers: name, image, ports, environment, mounts, probes, and their requests and limits.

`pods` calls `container_errors` for every container. Hugepages and extended resources cannot be overcommitted, so their
requests must equal their limits."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from numalign.api.decode import quantity
from numalign.api.decode.quantity import Quantity
from numalign.api.objects import resourcenames
from numalign.simulator import trees
from numalign.simulator.apiserver.defaults import podspecs
from numalign.simulator.apiserver.defaults.podspecs import PROBES
from numalign.simulator.apiserver.storage.errors import StatusCause
from numalign.simulator.apiserver.storage.names import dns_label_problems, qualified_name_problems
from numalign.simulator.apiserver.validation import rules
from numalign.simulator.trees import Tree

STANDARD: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
# Known resource names that containers cannot have.
STANDARD_ELSEWHERE: Final = frozenset({"storage", "pods", "requests.cpu", "requests.memory", "limits.cpu"})
UNQUALIFIED: Final = "must be a standard resource type or fully qualified"
NOT_FOR_CONTAINERS: Final = "must be a standard resource for containers"
LIMIT_MISSING: Final = "Limit must be set for non overcommitable resources"
HUGEPAGES_ALONE: Final = "HugePages require cpu or memory"
OF_WHOLE_PODS: Final = ("cpu", "hugepages-", "memory")
PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
CHOICES: Final = {
    "imagePullPolicy": ("Always", "IfNotPresent", "Never"),
    "terminationMessagePolicy": ("File", "FallbackToLogsOnError"),
    "restartPolicy": ("Always", "Never", "OnFailure"),
}
HOOKS: Final = ("postStart", "preStop")
HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
VARIABLE: Final = re.compile(r"[\x20-\x3c\x3e-\x7e]+")
VARIABLE_RULE: Final = (
    "a valid environment variable name must consist only of printable ASCII characters other than '='"
)
PORT_SIGNS: Final = re.compile(r"[-a-z0-9]+")
PORT_SIGNS_RULE: Final = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
MAX_PORT_NAME: Final = 15
SPACES: Final = "must not have leading or trailing whitespace"


def resource_errors(resources: Tree, path: str) -> tuple[StatusCause, ...]:
    """The errors of one container's requests and limits."""
    return _errors(trees.encoded(resources), path)


# There are far fewer distinct sizes than containers.
@lru_cache(maxsize=4096)
def _errors(data: bytes, path: str) -> tuple[StatusCause, ...]:
    resources = trees.decoded(data)
    limits, requests = (
        podspecs.parsed_quantities(resources.get("limits")),
        podspecs.parsed_quantities(resources.get("requests")),
    )
    found = list[StatusCause]()
    for name, amount in sorted(limits.items()):
        found += _amount(name, amount, f"{path}.limits[{name}]")
    for name, amount in sorted(requests.items()):
        found += _amount(name, amount, f"{path}.requests[{name}]") + _within(name, amount, limits, path)
    names = limits.keys() | requests.keys()
    if any(map(resourcenames.is_hugepages, names)) and not names & {"cpu", "memory"}:
        found.append(rules.forbidden(path, HUGEPAGES_ALONE))
    return tuple(found)


def _amount(name: str, amount: Quantity, path: str) -> list[StatusCause]:
    found = [rules.invalid(path, name, problem) for problem in name_problems(name)]
    if amount.nanos < 0:
        found.append(rules.invalid(path, str(amount), rules.NOT_NEGATIVE))
    if resourcenames.is_hugepages(name):
        found += _pages(name, amount, path)
    elif not amount.is_whole and resourcenames.is_extended(name):
        found.append(rules.invalid(path, str(amount), "must be an integer"))
    return found


def _pages(name: str, amount: Quantity, path: str) -> list[StatusCause]:
    try:
        size = quantity.parse(name.removeprefix(resourcenames.HUGEPAGES_PREFIX)).value
    except quantity.QuantityError:
        size = 0
    if size > 0 and amount.nanos >= 0 and amount.value % size == 0:
        return []
    return [rules.invalid(path, str(amount), f"{amount} is not positive integer multiple of {name}")]


def _within(name: str, amount: Quantity, limits: dict[str, Quantity], path: str) -> list[StatusCause]:
    limit = limits.get(name)
    exact = name not in STANDARD and (resourcenames.is_hugepages(name) or resourcenames.is_extended(name))
    if limit is None:
        return [rules.required(f"{path}.limits", LIMIT_MISSING)] if exact else []
    if exact and amount != limit:
        why = f"must be equal to {name} limit of {limit}"
    elif amount > limit:
        why = f"must be less than or equal to {name} limit of {limit}"
    else:
        return []
    return [rules.invalid(f"{path}.requests", str(amount), why)]


@lru_cache(maxsize=1024)
def name_problems(name: str) -> tuple[str, ...]:
    """The problems of a resource name in a container."""
    if name in STANDARD or name.startswith(resourcenames.HUGEPAGES_PREFIX):
        return ()
    problems = tuple(qualified_name_problems(name))
    if problems or "/" not in name:
        unknown = () if problems or name in STANDARD_ELSEWHERE else (UNQUALIFIED,)
        return (*problems, *unknown, NOT_FOR_CONTAINERS)
    return ()


def whole_pod_errors(spec: Tree) -> list[StatusCause]:
    """The errors of `spec.resources`: unsupported resources, and less than the containers request together."""
    whole, found = spec["resources"], list[StatusCause]()
    for field in ("limits", "requests"):
        for name in sorted(whole.get(field) or {}):
            if not resourcenames.is_pod_level(name):
                found.append(rules.unsupported(f"spec.resources.{field}[{name}]", name, OF_WHOLE_PODS))
    return found or _aggregate_errors(spec)


def _aggregate_errors(spec: Tree) -> list[StatusCause]:
    asked, found = dict[str, Quantity](), list[StatusCause]()
    for container in spec.get("containers") or ():
        for name, amount in podspecs.parsed_quantities((container.get("resources") or {}).get("requests")).items():
            asked[name] = asked.get(name, quantity.ZERO) + amount
    for name, amount in podspecs.parsed_quantities(spec["resources"].get("requests")).items():
        if name in asked and amount < asked[name]:
            why = f"must be greater than or equal to aggregate container requests of {asked[name]}"
            found.append(rules.invalid(f"spec.resources.requests[{name}]", str(amount), why))
    return found


def container_errors(container: Tree, path: str, volumes: Iterable[str], *, on_host: bool) -> list[StatusCause]:
    found = rules.required_name(f"{path}.name", container.get("name"), dns_label_problems)
    image = container.get("image", "")
    if not image:
        found.append(rules.required(f"{path}.image"))
    elif image != image.strip():
        found.append(rules.invalid(f"{path}.image", image, SPACES))
    for field, known in CHOICES.items():
        if container.get(field) and container[field] not in known:
            found.append(rules.unsupported(f"{path}.{field}", container[field], known))
    if container.get("resources"):
        found += resource_errors(container["resources"], f"{path}.resources")
    return [*found, *_parts(container, path, volumes, on_host=on_host)]


def _parts(container: Tree, path: str, volumes: Iterable[str], *, on_host: bool) -> Iterator[StatusCause]:
    """The errors of the fields that most containers do not have."""
    if container.get("ports"):
        yield from _ports(container["ports"], f"{path}.ports", on_host=on_host)
    for index, variable in enumerate(container.get("env") or ()):
        yield from rules.required_name(f"{path}.env[{index}].name", variable.get("name"), _variable_problems)
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        if mount.get("name") not in volumes:
            yield rules.missing(f"{path}.volumeMounts[{index}].name", mount.get("name", ""))
    acts: Tree = {probe: container[probe] for probe in PROBES if probe in container}
    acts |= {f"lifecycle.{hook}": act for hook, act in (container.get("lifecycle") or {}).items() if hook in HOOKS}
    for name, act in acts.items():
        if not any(each in act for each in HANDLERS):
            yield rules.required(f"{path}.{name}", "must specify a handler type")


def _variable_problems(name: str) -> list[str]:
    return [] if VARIABLE.fullmatch(name) else [VARIABLE_RULE]


def _ports(ports: list[Tree], path: str, *, on_host: bool) -> Iterator[StatusCause]:
    names = set[str]()
    for index, port in enumerate(ports):
        here, name = f"{path}[{index}]", port.get("name")
        if name:
            yield from rules.name_errors(f"{here}.name", name, _port_name_problems)
            if name in names:
                yield rules.duplicate(f"{here}.name", name)
            names.add(name)
        yield from _port(port, here, on_host=on_host)


def _port(port: Tree, path: str, *, on_host: bool) -> Iterator[StatusCause]:
    number, host = port.get("containerPort", 0), port.get("hostPort", 0)
    if number == 0:
        yield rules.required(f"{path}.containerPort")
    else:
        yield from rules.port_number(f"{path}.containerPort", number)
    if host:
        yield from rules.port_number(f"{path}.hostPort", host)
        if on_host and host != number:
            why = "must match `containerPort` when `hostNetwork` is true"
            yield rules.invalid(f"{path}.hostPort", host, why)
    yield from rules.one_of(f"{path}.protocol", port.get("protocol"), PROTOCOLS)


def _port_name_problems(name: str) -> list[str]:
    problems = [f"must be no more than {MAX_PORT_NAME} characters"] if len(name) > MAX_PORT_NAME else []
    if not PORT_SIGNS.fullmatch(name):
        problems.append(PORT_SIGNS_RULE)
    elif not any(sign.isalpha() for sign in name):
        problems.append("must contain at least one letter (a-z)")
    return problems


def shared_host_ports(containers: list[Tree], path: str) -> Iterator[StatusCause]:
    """A host port can be used once in a pod."""
    taken = set[str]()
    for index, container in enumerate(containers):
        for place, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            claim = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if claim in taken:
                yield rules.duplicate(f"{path}[{index}].ports[{place}].hostPort", claim)
            taken.add(claim)
