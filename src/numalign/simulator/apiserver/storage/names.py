"""What may stand in a label: the shape of keys and values, and the sentences for what does not fit.

`selectors` checks what clients ask with; the sentences are the API machinery's own."""

import re
from typing import Final

NAME: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
PREFIX: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LONGEST_NAME: Final = 63
LONGEST_PREFIX: Final = 253

ALPHABET: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
NAME_RULE: Final = (
    f"name part {ALPHABET} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
PREFIX_RULE: Final = (
    "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
    "must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
KEY_RULE: Final = (
    f"a qualified name {ALPHABET} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. "
    "'example.com/MyName')"
)


def key_problems(key: str) -> list[str]:
    """Of a label's key; none where it is fine."""
    if key.count("/") > 1:
        return [KEY_RULE]
    prefix, slash, name = key.rpartition("/")
    return [*(_prefix_problems(prefix) if slash else ()), *_name_problems(name)]


def value_problems(value: str) -> list[str]:
    problems = [f"must be no more than {LONGEST_NAME} bytes"] if len(value) > LONGEST_NAME else []
    return problems if not value or NAME.fullmatch(value) else [*problems, VALUE_RULE]


def _prefix_problems(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    problems = [f"prefix part must be no more than {LONGEST_PREFIX} bytes"] if len(prefix) > LONGEST_PREFIX else []
    return problems if PREFIX.fullmatch(prefix) else [*problems, PREFIX_RULE]


def _name_problems(name: str) -> list[str]:
    problems = [] if name else ["name part must be non-empty"]
    if len(name) > LONGEST_NAME:
        problems.append(f"name part must be no more than {LONGEST_NAME} bytes")
    return problems if NAME.fullmatch(name) else [*problems, NAME_RULE]
