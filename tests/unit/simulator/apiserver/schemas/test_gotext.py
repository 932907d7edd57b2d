"""Bytes that are no JSON, with the words that a kube-apiserver 1.37 had for them."""

import pytest

from numalign.simulator.apiserver.schemas import gotext

COMPLAINTS = {
    "": "unexpected end of JSON input",
    "{": "unexpected end of JSON input",
    '{"a":"b': "unexpected end of JSON input",
    "hello": "invalid character 'h' looking for beginning of value",
    "'": r"invalid character '\'' looking for beginning of value",
    "\x01{": r"invalid character '\x01' looking for beginning of value",
    "{}{}": "invalid character '{' after top-level value",
    "01": "invalid character '1' after top-level value",
    '{"a" 1}': "invalid character '1' after object key",
    '{"a":1 "b"}': "invalid character '\"' after object key:value pair",
    "{a:1}": "invalid character 'a' looking for beginning of object key string",
    '{"a":1,}': "invalid character '}' looking for beginning of object key string",
    "[1 2]": "invalid character '2' after array element",
    "[1,]": "invalid character ']' looking for beginning of value",
    '{"a":tru}': "invalid character '}' in literal true (expecting 'e')",
    '{"a":nul': "invalid character ' ' in literal null (expecting 'l')",
    '{"a":"\n"}': r"invalid character '\n' in string literal",
    r'{"a":"\x"}': "invalid character 'x' in string escape code",
    '{"a":"\\': "invalid character ' ' in string escape code",
    r'{"a":"\u00': r"invalid character ' ' in \u hexadecimal character escape",
    "-x": "invalid character 'x' in numeric literal",
    '{"a":1.x}': "invalid character 'x' after decimal point in numeric literal",
    "[1e+]": "invalid character ']' in exponent of numeric literal",
    "[" * 100_000: "exceeded max depth",
}


@pytest.mark.parametrize("text, words", COMPLAINTS.items(), ids=[repr(text)[:20] for text in COMPLAINTS])
def test_the_complaint_is_that_of_the_real_server(text: str, words: str) -> None:
    assert gotext.json_error(text.encode()) == words


def test_a_byte_that_is_no_text_is_shown_as_its_number_would_be() -> None:
    assert gotext.json_error(b"\xc7,") == "invalid character 'Ç' looking for beginning of value"
