"""Reads the values of an installation, as Helm reads those of a chart.

The command line, the deployer and the operator call `read`. Objects of a file are merged into the defaults, lists and
scalars replace them, and null removes an entry of an object whose keys are the user's. Every error is a BadObject that
names the field and what is allowed there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, inspect

from numalign.api import errors
from numalign.api.decode import fields
from numalign.api.decode.fields import Field
from numalign.api.errors import BadObject
from numalign.api.schedulerconfig import configuration
from numalign.deploy import model, schedulerfile
from numalign.deploy.model import Agent, Scheduler, Values
from numalign.deploy.schedulerfile import EVERYBODY, Lease

__all__ = ["DEFAULTS", "KIND", "Values", "checked", "merged", "over", "plain", "read"]

KIND: Final = "Values"


def checked(document: object, source: str) -> dict[str, Any]:
    """One of several files: each field is there and has its type. Whether fields go together is for all files."""
    given = fields.root({} if document is None else document, KIND, source)
    _check(given, inspect.type_info(Values))
    return fields.named(given)


def read(document: object, source: str = "") -> Values:
    """The values of a parsed file over the defaults; None means an empty file."""
    given = fields.root(checked(document, source), KIND, source)
    try:
        found = msgspec.convert(merged(DEFAULTS, fields.named(given)), Values)
    except (msgspec.ValidationError, RecursionError) as problem:
        raise given.bad(str(problem)) from None
    _check_config(found, given)
    for path, why in _contradictions(found):
        raise BadObject(given.kind, given.source, path, why)
    if found.operator.values:
        _check_operands(found.operator.values, given)
    return found


def _check_operands(document: Mapping[str, Any], given: Field) -> None:
    """The values that an operator is given are those of an installation without operator, under fixed names."""
    inner = Field(document, "operator.values", given.kind, given.source)
    for key in ("operator", "nameOverride", "fullnameOverride", "namespaceOverride"):
        if inner.at(key).given:
            raise inner.at(key).bad("is not for agents and scheduler of an operator")
    try:
        read(document, given.source)
    except BadObject as problem:
        raise inner.at(problem.field).bad(problem.why) from None


def plain(values: Values) -> dict[str, Any]:
    """As a values file that sets everything."""
    written: dict[str, Any] = msgspec.to_builtins(values)
    return written


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """As Helm merges a values file into a chart's: objects key by key, null removes."""
    result = dict(base)
    for key, value in over.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(result.get(key), Mapping):
            result[key] = merged(result[key], value)
        else:
            result[key] = value
    return result


def over(base: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Two values files as one, the later one over the other: null stays, and removes a default."""
    result = dict(base)
    for key, value in later.items():
        both = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = over(result[key], value) if both else value
    return result


def _check(field: Field, info: inspect.Type) -> None:
    """Raises BadObject for the first part of the file that does not fit."""
    match info:
        case inspect.StructType():
            _check_struct(field, info)
        case inspect.ListType():
            items = list(fields.items(field))
            if len(items) < (info.min_length or 0):
                raise field.bad("an empty list; leave the field out for its default")
            for item in items:
                _check(item, info.item_type)
        case inspect.DictType():
            for key, value in fields.entries(field):
                _check_scalar(Field(key, field.path, field.kind, field.source), info.key_type)
                if value.given:
                    _check(value, info.value_type)
        case inspect.Metadata():
            _check(field, info.type)
        case _:
            _check_scalar(field, info)


def _check_struct(field: Field, info: inspect.StructType) -> None:
    known = {each.encode_name: each for each in info.fields}
    if info.forbid_unknown_fields:
        fields.only(field, known)
    for key in fields.named(field).keys() & known:
        inner = field.at(key)
        if not inner.given:
            raise inner.bad("null; leave the field out for its default")
        _check(inner, known[key].type)
    # The defaults have all other fields already.
    for each in info.fields if field.path.endswith("]") else ():
        if each.required and not field.at(each.encode_name).given:
            raise field.at(each.encode_name).bad("missing")


def _check_scalar(field: Field, info: inspect.Type) -> None:
    match info:
        case inspect.LiteralType():
            choices = [str(each) for each in info.values]
            if fields.text(field) not in choices:
                raise field.bad(f"{errors.echo(field.value)} is not one of {', '.join(filter(None, choices))}")
        case inspect.BoolType():
            fields.boolean(field)
        case inspect.IntType():
            fields.integer(field, info.ge or 0, info.le if info.le is not None else fields.INT32_MAX)
        case inspect.StrType():
            _check_text(field, info)


def _check_text(field: Field, info: inspect.StrType) -> None:
    written = fields.text(field)
    if info.max_length is not None and len(written) > info.max_length:
        raise field.bad(f"longer than {info.max_length} characters")
    if info.pattern is not None and not re.search(info.pattern, written):
        raise field.bad(f"{errors.echo(written)} is not {WORDS.get(info.pattern, info.pattern)}")


def _pattern(annotated: Any) -> str:
    return str(annotated.__metadata__[0].pattern)


NAME: Final = "a name of small letters, digits and dashes"
NAME_WITH_DOTS: Final = "a name of small letters, digits, dashes and dots"
PATH: Final = "an absolute path without a slash at its end"
REGISTRY: Final = (
    "a registry; write a host like registry.example.com:5000/team, without https:// and a slash at its end"
)
IMAGE: Final = "the name of an image without registry and tag, such as numalign/agent"
TAG: Final = "a tag of up to 128 letters, digits, dots, dashes and underscores"
TIME: Final = "a length of time; write one like 15s or 1m30s"
WORDS: Final = {
    _pattern(model.Label): NAME,
    _pattern(model.OptionalLabel): NAME,
    _pattern(model.Subdomain): NAME_WITH_DOTS,
    _pattern(model.SchedulerName): NAME_WITH_DOTS,
    _pattern(model.HostFile): PATH,
    _pattern(model.Folder): PATH,
    _pattern(model.Duration): TIME,
    _pattern(model.OptionalDuration): TIME,
    _pattern(model.Registry): REGISTRY,
    _pattern(model.Repository): IMAGE,
    _pattern(model.OptionalTag): TAG,
    _pattern(model.LabelKey): "the key of a label or annotation; write one like example.com/team",
    _pattern(model.LabelValue): "the value of a label; use letters, digits, inner dots, dashes and underscores",
    _pattern(model.Digest): "a digest; write sha256: and 64 hexadecimal digits",
}
DEFAULTS: Final[Mapping[str, Any]] = plain(Values())
STOCK: Final = Lease(schedulerfile.STOCK_NAMESPACE, configuration.STOCK_LEASE)
SOME_LEASE: Final = Lease("default", "numalign")
"""For a configuration that is only checked."""


def _check_config(values: Values, given: Field) -> None:
    config = Field(values.scheduler.config, "scheduler.config", given.kind, given.source)
    if config.at("leaderElection").given:
        fields.mapping(config.at("leaderElection"))
    try:
        configuration.read(schedulerfile.document(values.scheduler, SOME_LEASE), given.source)
    except BadObject as problem:
        raise config.at(problem.field).bad(problem.why) from None


def _contradictions(values: Values) -> Iterator[tuple[str, str]]:
    """Paths and reasons of settings that do not go together. The chart's templates refuse the same."""
    for name, enabled in (("agent", values.agent.enabled), ("scheduler", values.scheduler.enabled)):
        if values.operator.enabled and enabled:
            yield f"{name}.enabled", f"the operator runs the {name}; set it to false, or operator.enabled"
    yield from _of_the_scheduler(values.scheduler)
    yield from _of_the_agent(values.agent)
    amounts = {"scheduler": values.scheduler.resources, "gc": values.gc.resources, "agent": values.agent.resources}
    own = {f"agent.nodeGroups[{index}]": group.resources for index, group in enumerate(values.agent.node_groups)}
    for place, resources in (amounts | own).items():
        if resources is not UNSET:
            yield from _of_resources(Field(resources, f"{place}.resources", KIND, ""))


def _of_resources(given: Field) -> Iterator[tuple[str, str]]:
    """The API server's own words for a wrong amount quote the whole object."""
    for kind in ("requests", "limits"):
        for _, amount in fields.entries(given.at(kind)):
            try:
                fields.amount(amount)
            except BadObject as problem:
                yield problem.field, problem.why


def _of_the_scheduler(settings: Scheduler) -> Iterator[tuple[str, str]]:
    config = schedulerfile.document(settings, SOME_LEASE)
    asked, tls = settings.mode == "extender", settings.tls
    if settings.replicas > 1 and not asked and schedulerfile.lease(config) is None:
        yield "scheduler.replicas", "more than one needs leader election, which scheduler.config turns off"
    if settings.mode == "secondary" and EVERYBODY in [each.get("schedulerName") for each in config["profiles"]]:
        yield "scheduler.mode", f"{EVERYBODY} is kube-scheduler's; to replace kube-scheduler, set the mode to only"
    if settings.mode == "secondary" and schedulerfile.lease(config) == STOCK:
        yield (
            "scheduler.leaderElection.resourceName",
            f"{STOCK.namespace}/{STOCK.name} is the lease of kube-scheduler, behind which this scheduler would wait "
            "for ever; leave the field out, or set the mode to only",
        )
    if tls.secret_name and tls.cert_manager.enabled:
        yield "scheduler.tls", "secretName and certManager.enabled exclude each other"
    if asked and not (tls.secret_name or tls.cert_manager.enabled):
        yield "scheduler.tls", "an extender needs a certificate that kube-scheduler can verify"
    if settings.expander_port and not (tls.secret_name or tls.cert_manager.enabled):
        yield (
            "scheduler.expanderPort",
            "needs a certificate that cluster-autoscaler can verify: scheduler.tls",
        )
    if asked and not settings.extender.client_ca_secret:
        yield "scheduler.extender.clientCaSecret", "missing; kube-scheduler sends a certificate, and no token"


def _of_the_agent(agent: Agent) -> Iterator[tuple[str, str]]:
    names = [group.name for group in agent.node_groups]
    for name in names:
        if names.count(name) > 1:
            yield "agent.nodeGroups", f"two groups have the name {name}"
    nodes: dict[str, str] = {}
    for group, settings in zip(agent.node_groups, model.groups(agent), strict=False):
        selected = json.dumps([settings.node_selector, settings.affinity], sort_keys=True)
        if (other := nodes.setdefault(selected, group.name)) != group.name:
            yield (
                "agent.nodeGroups",
                f"{other} and {group.name} select the same nodes, and two agents would write one report; give them "
                "different values of nodeSelector",
            )
    for index, settings in enumerate(model.groups(agent)):
        if settings.exclude and settings.mode == "own":
            where = f"agent.nodeGroups[{index}]" if agent.node_groups else "agent"
            yield f"{where}.exclude", "is for the modes rte and nfd; a report in our own form is always complete"
