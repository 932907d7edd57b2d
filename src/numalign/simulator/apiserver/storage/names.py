"""Checks the syntax of names: label keys and values, object names, keys of config maps.

Label selectors and validation call these. Each function returns the problems of one text, in the sentences of the
API machinery's `util/validation`; an empty list means that the text is valid."""

import re
from typing import Final

NAME_LENGTH: Final = 63
SUBDOMAIN_LENGTH: Final = 253

NAME: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
DNS1035_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
CONFIG_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")

ALPHABET: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
NAME_RULE: Final = (
    f"name part {ALPHABET} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
KEY_RULE: Final = (
    f"a qualified name {ALPHABET} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. "
    "'example.com/MyName')"
)
VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
    "must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
DNS_LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
DNS1035_LABEL_RULE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
CONFIG_KEY_RULE: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)


def qualified_name_problems(key: str) -> list[str]:
    """The problems of a label's key, a taint's key or a finalizer: `[prefix/]name`."""
    if key.count("/") > 1:
        return [KEY_RULE]
    prefix, slash, name = key.rpartition("/")
    return [*(_prefix_problems(prefix) if slash else ()), *_name_problems(name)]


def _prefix_problems(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    problems = [f"prefix part must be no more than {SUBDOMAIN_LENGTH} bytes"] if len(prefix) > SUBDOMAIN_LENGTH else []
    return problems if SUBDOMAIN.fullmatch(prefix) else [*problems, f"prefix part {SUBDOMAIN_RULE}"]


def _name_problems(name: str) -> list[str]:
    problems = [] if name else ["name part must be non-empty"]
    if len(name) > NAME_LENGTH:
        problems.append(f"name part must be no more than {NAME_LENGTH} bytes")
    return problems if NAME.fullmatch(name) else [*problems, NAME_RULE]


def label_value_problems(value: str) -> list[str]:
    problems = [f"must be no more than {NAME_LENGTH} bytes"] if len(value) > NAME_LENGTH else []
    return problems if not value or NAME.fullmatch(value) else [*problems, VALUE_RULE]


def dns_label_problems(name: str) -> list[str]:
    rule = "must not contain dots" if SUBDOMAIN.fullmatch(name) else DNS_LABEL_RULE
    problems = [] if DNS_LABEL.fullmatch(name) else [rule]
    return [f"must be no more than {NAME_LENGTH} characters", *problems] if len(name) > NAME_LENGTH else problems


def dns1035_label_problems(name: str) -> list[str]:
    return [] if DNS1035_LABEL.fullmatch(name) else [DNS1035_LABEL_RULE]


def subdomain_problems(name: str) -> list[str]:
    problems = [] if SUBDOMAIN.fullmatch(name) else [SUBDOMAIN_RULE]
    if len(name) > SUBDOMAIN_LENGTH:
        return [f"must be no more than {SUBDOMAIN_LENGTH} characters", *problems]
    return problems


def path_segment_problems(name: str) -> list[str]:
    """The problems of the name of an RBAC object, which only has to fit into a URL path."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{sign}'" for sign in "/%" if sign in name]


def config_key_problems(key: str) -> list[str]:
    if key in (".", ".."):
        return [f"must not be '{key}'"]
    return [] if CONFIG_KEY.fullmatch(key) else [CONFIG_KEY_RULE]
