"""Draw docs/demo.svg, the picture in the README, from what `numalign demo` prints in a terminal.

Run by `make picture`; a test compares the picture's words with the demo's, so that it stays true."""

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

PICTURE = Path(__file__).with_name("demo.svg")
COLUMNS = 110

# Rich's own template names a web font; this one makes do with what the reader has.
TEMPLATE = """<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 {width} {height}">
<style>
.{unique_id}-matrix {{ font-family: Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: {char_height}px;
line-height: {line_height}px; white-space: pre; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}</defs>
<rect width="{width}" height="{height}" rx="8" fill="#1b1d1e"/>
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""


def printed() -> str:
    """The demo as a terminal of this width gets it."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    command = [sys.executable, "-c", "from numalign.cli.main import app; app()", "demo"]
    with subprocess.Popen(command, stdout=theirs, env=environment) as demo:
        os.close(theirs)
        chunks: list[bytes] = []
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:
                break  # how a pseudo-terminal says that the other end is closed
            if not chunk:
                break
            chunks.append(chunk)
        demo.wait()
    os.close(ours)
    return b"".join(chunks).decode()


def picture(text: str) -> str:
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text.from_ansi(text.replace("\r\n", "\n").rstrip("\n")))
    return console.export_svg(theme=MONOKAI, code_format=TEMPLATE, unique_id="demo")


if __name__ == "__main__":
    PICTURE.write_text(picture(printed()))
