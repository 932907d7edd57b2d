"""Go's patterns for names."""

import pytest

from numalign.agent.inventory import exclusions


@pytest.mark.parametrize(
    "pattern, text, matches",
    [
        ("web-*", "web-1", True),
        ("web-?", "web-12", False),
        ("*", "a/b", False),
        ("[a-c]x", "bx", True),
        ("[^a-c]x", "bx", False),
        ("[!a]", "!", True),
        ("[!a]", "b", False),
        ("[b-a]", "a", False),
        ("[^b-a]", "a", True),
        (r"\*", "*", True),
        (r"\*", "a", False),
        (r"[\]]", "]", True),
        ("[a", "[a", False),
        ("[]a]", "a", False),
        ("[a-]", "a", False),
        ("a\\", "a", False),
        ("p.d", "pod", False),
        ("p?d", "pöd", True),
        ("", "", True),
    ],
)
def test_a_name_is_matched_as_go_would(pattern: str, text: str, matches: bool) -> None:
    assert exclusions.matches(pattern, text) is matches
