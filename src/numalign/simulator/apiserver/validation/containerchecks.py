"""What a container of a pod must keep to: name, image, ports, environment, mounts, probes, amounts."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from numalign.simulator.apiserver.defaults.podspecs import PROBES
from numalign.simulator.apiserver.storage.errors import Cause
from numalign.simulator.apiserver.validation import resourcechecks, rules
from numalign.simulator.trees import Tree

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
LONGEST_PORT_NAME: Final = 15
SPACES: Final = "must not have leading or trailing whitespace"


def errors(container: Tree, path: str, volumes: Iterable[str], *, on_host: bool) -> list[Cause]:
    found = rules.required_name(f"{path}.name", container.get("name"), rules.label_problems)
    image = container.get("image", "")
    if not image:
        found.append(rules.required(f"{path}.image"))
    elif image != image.strip():
        found.append(rules.invalid(f"{path}.image", image, SPACES))
    for field, known in CHOICES.items():
        if container.get(field) and container[field] not in known:
            found.append(rules.unsupported(f"{path}.{field}", container[field], known))
    if container.get("resources"):
        found += resourcechecks.errors(container["resources"], f"{path}.resources")
    return [*found, *_parts(container, path, volumes, on_host=on_host)]


def _parts(container: Tree, path: str, volumes: Iterable[str], *, on_host: bool) -> Iterator[Cause]:
    """Of what most containers do not have."""
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


def _ports(ports: list[Tree], path: str, *, on_host: bool) -> Iterator[Cause]:
    names = set[str]()
    for index, port in enumerate(ports):
        here, name = f"{path}[{index}]", port.get("name")
        if name:
            yield from rules.named(f"{here}.name", name, _port_name_problems)
            if name in names:
                yield rules.duplicate(f"{here}.name", name)
            names.add(name)
        yield from _port(port, here, on_host=on_host)


def _port(port: Tree, path: str, *, on_host: bool) -> Iterator[Cause]:
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
    yield from rules.choice(f"{path}.protocol", port.get("protocol"), PROTOCOLS)


def _port_name_problems(name: str) -> list[str]:
    problems = [f"must be no more than {LONGEST_PORT_NAME} characters"] if len(name) > LONGEST_PORT_NAME else []
    if not PORT_SIGNS.fullmatch(name):
        problems.append(PORT_SIGNS_RULE)
    elif not any(sign.isalpha() for sign in name):
        problems.append("must contain at least one letter (a-z)")
    return problems


def shared_host_ports(containers: list[Tree], path: str) -> Iterator[Cause]:
    """A port of the host can be had once per pod."""
    taken = set[str]()
    for index, container in enumerate(containers):
        for place, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            claim = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if claim in taken:
                yield rules.duplicate(f"{path}[{index}].ports[{place}].hostPort", claim)
            taken.add(claim)
