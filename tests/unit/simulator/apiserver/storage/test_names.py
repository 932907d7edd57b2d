"""The syntax of names: what is valid, and which of the API machinery's sentences an invalid name gets."""

from collections.abc import Callable

import pytest

from numalign.simulator.apiserver.storage import names

Check = Callable[[str], list[str]]

VALID: dict[str, tuple[Check, tuple[str, ...]]] = {
    "qualified name": (names.qualified_name_problems, ("a", "A_b.c", "example.com/a", "k8s.io/My-Name", "a" * 63)),
    "label value": (names.label_value_problems, ("", "a", "A_b.c-9", "a" * 63)),
    "DNS label": (names.dns_label_problems, ("a", "0-9", "a" * 63)),
    "DNS-1035 label": (names.dns1035_label_problems, ("a", "a-9")),
    "subdomain": (names.subdomain_problems, ("a", "a.b-c.0", "a" * 253)),
    "path segment": (names.path_segment_problems, ("system:node", "a b", "...")),
    "config key": (names.config_key_problems, ("a", ".bashrc", "A_B-c", "...")),
}

INVALID: dict[str, tuple[Check, str, list[str]]] = {
    "two slashes": (names.qualified_name_problems, "a/b/c", [names.KEY_RULE]),
    "empty prefix": (names.qualified_name_problems, "/a", ["prefix part must be non-empty"]),
    "upper case prefix": (names.qualified_name_problems, "A/a", [f"prefix part {names.SUBDOMAIN_RULE}"]),
    "empty name": (names.qualified_name_problems, "a/", ["name part must be non-empty", names.NAME_RULE]),
    "long name": (names.qualified_name_problems, "a" * 64, ["name part must be no more than 63 bytes"]),
    "trailing dash in a value": (names.label_value_problems, "a-", [names.VALUE_RULE]),
    "long value": (names.label_value_problems, "a" * 64, ["must be no more than 63 bytes"]),
    "dots in a label": (names.dns_label_problems, "a.b", ["must not contain dots"]),
    "upper case label": (names.dns_label_problems, "A", [names.DNS_LABEL_RULE]),
    "long label": (names.dns_label_problems, "A" * 64, ["must be no more than 63 characters", names.DNS_LABEL_RULE]),
    "leading digit": (names.dns1035_label_problems, "9a", [names.DNS1035_LABEL_RULE]),
    "underscore in a subdomain": (names.subdomain_problems, "a_b", [names.SUBDOMAIN_RULE]),
    "long subdomain": (names.subdomain_problems, "a" * 254, ["must be no more than 253 characters"]),
    "parent directory": (names.path_segment_problems, "..", ["may not be '..'"]),
    "slash and percent": (names.path_segment_problems, "a/%", ["may not contain '/'", "may not contain '%'"]),
    "dots as a config key": (names.config_key_problems, ".", ["must not be '.'"]),
    "space in a config key": (names.config_key_problems, "a b", [names.CONFIG_KEY_RULE]),
}


@pytest.mark.parametrize("check, valid", VALID.values(), ids=VALID)
def test_valid_names_have_no_problems(check: Check, valid: tuple[str, ...]) -> None:
    assert [problem for name in valid for problem in check(name)] == []


@pytest.mark.parametrize("check, name, problems", INVALID.values(), ids=INVALID)
def test_invalid_names_have_the_sentences_of_the_api_machinery(check: Check, name: str, problems: list[str]) -> None:
    assert check(name) == problems
