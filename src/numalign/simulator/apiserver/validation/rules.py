"""The words for broken rules, and the rules for names that all kinds share.

The checks of every kind are made of these; the sentences are those of the real server, since people search for them."""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final

from numalign.simulator.apiserver.schemas import causes
from numalign.simulator.apiserver.storage import labelsyntax
from numalign.simulator.apiserver.storage.errors import Cause
from numalign.simulator.trees import Tree

LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN_RULE: Final = labelsyntax.PREFIX_RULE.removeprefix("prefix part ")
CONFIG_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
CONFIG_KEY_RULE: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
PERCENT: Final = re.compile(r"[0-9]+%")
PERCENT_RULE: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)
NOT_NEGATIVE: Final = "must be greater than or equal to 0"
IMMUTABLE: Final = "field is immutable"
LONGEST_LABEL: Final = 63
LONGEST_NAME: Final = 253

invalid, required = causes.invalid, causes.required
forbidden, unsupported = causes.forbidden, causes.unsupported
duplicate, missing = causes.duplicate, causes.missing

NameRule = Callable[[str], list[str]]


def label_problems(name: str) -> list[str]:
    rule = "must not contain dots" if labelsyntax.PREFIX.fullmatch(name) else LABEL_RULE
    problems = [] if LABEL.fullmatch(name) else [rule]
    return [f"must be no more than {LONGEST_LABEL} characters", *problems] if len(name) > LONGEST_LABEL else problems


def subdomain_problems(name: str) -> list[str]:
    problems = [] if labelsyntax.PREFIX.fullmatch(name) else [SUBDOMAIN_RULE]
    return [f"must be no more than {LONGEST_NAME} characters", *problems] if len(name) > LONGEST_NAME else problems


def path_problems(name: str) -> list[str]:
    """Names of RBAC objects only have to fit into a path."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{sign}'" for sign in "/%" if sign in name]


def config_key_problems(key: str) -> list[str]:
    if key in (".", ".."):
        return [f"must not be '{key}'"]
    return [] if CONFIG_KEY.fullmatch(key) else [CONFIG_KEY_RULE]


def named(path: str, name: str, rule: NameRule) -> list[Cause]:
    return [invalid(path, name, problem) for problem in rule(name)]


def required_name(path: str, name: str | None, rule: NameRule) -> list[Cause]:
    return named(path, name, rule) if name else [required(path)]


def choice(path: str, value: Any, known: Iterable[str]) -> list[Cause]:
    """One of a few words, or nothing."""
    return [] if not value or value in known else [unsupported(path, value, known)]


def not_negative(holder: Tree, *fields: str, path: str = "spec") -> list[Cause]:
    found = []
    for field in fields:
        value = holder.get(field)
        if value is not None and value < 0:
            found.append(invalid(f"{path}.{field}" if path else field, value, NOT_NEGATIVE))
    return found


def port_number(path: str, number: int) -> list[Cause]:
    return [] if 1 <= number <= 65535 else [invalid(path, number, "must be between 1 and 65535, inclusive")]


def share(path: str, value: int | str | None, *, at_most_all: bool = False) -> list[Cause]:
    """A number of things, or a percentage of them."""
    if value is None:
        return []
    if isinstance(value, int):
        return [invalid(path, value, NOT_NEGATIVE)] if value < 0 else []
    if not PERCENT.fullmatch(value):
        return [invalid(path, value, PERCENT_RULE)]
    return [invalid(path, value, "must not be greater than 100%")] if at_most_all and int(value[:-1]) > 100 else []


def label_map(path: str, labels: Tree | None) -> list[Cause]:
    found = []
    for key, value in (labels or {}).items():
        if not _is_label(key, value):
            found += named(path, key, labelsyntax.key_problems)
            found += named(path, value, labelsyntax.value_problems)
    return found


@lru_cache(maxsize=4096)
def _is_label(key: str, value: str) -> bool:
    return not labelsyntax.key_problems(key) and not labelsyntax.value_problems(value)


def unchanged(path: str, new: Any, old: Any, shown: Any = ...) -> list[Cause]:
    """Some values the real server does not show again."""
    return [] if new == old else [invalid(path, new if shown is ... else shown, IMMUTABLE)]
