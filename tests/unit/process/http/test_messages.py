"""A response has the lines that it is meant to have, whatever its values contain."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from numalign.process.http import messages
from numalign.process.http.messages import Response

VALUES = st.text(st.sampled_from('ab:\r\n\0 "é\ud800'), max_size=12)


@given(VALUES, st.lists(st.tuples(VALUES, VALUES), max_size=3))
def test_no_value_begins_a_line(content_type: str, headers: list[tuple[str, str]]) -> None:
    written = messages.head(Response(200, b"body", content_type, tuple(headers)), "A: b\r\n")
    lines = written.split(b"\r\n")
    assert len(lines) == 4 + len(headers) + 2
    assert not any(b"\r" in line or b"\n" in line for line in lines)
    assert lines[:4:2] == [b"HTTP/1.1 200 OK", b"Content-Length: 4"]


def test_an_injected_header_stays_a_value() -> None:
    written = messages.head(Response(200, b"", headers=(("Warning", "x\r\nX-Injected: yes\r\n\r\n<script>"),)))
    assert b"Warning: x X-Injected: yes <script>\r\n" in written
