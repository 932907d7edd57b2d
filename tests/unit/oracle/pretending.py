"""Oracle programs that only pretend: scripts that answer cases line by line, as a test wants it."""

from __future__ import annotations

import sys
from pathlib import Path

HEAD = """#!{python}
import json, sys
surely = "200" in sys.argv
for line in sys.stdin:
    case = json.loads(line)
    family = case.pop("family")
"""
AS_RECORDED = ""
OTHERWISE = """
    case["admit"] = not case["admit"]
"""
NEVER_THE_SAME = """
    case = {"id": case["id"], "nondeterministic": True} if surely else {**case, "admit": not case["admit"]}
"""
SPINS = """
    case = {"id": case["id"], "timeout": True}
"""
SLOW = """
    case = case if "60s" in sys.argv else {"id": case["id"], "timeout": True}
"""
TAIL = """
    print(json.dumps(case), flush=True)
"""


def program(folder: Path, answer: str) -> Path:
    """An executable that changes cases as the script says, and gives them back."""
    path = folder / "oracle"
    path.write_text(HEAD.format(python=sys.executable) + answer + TAIL)
    path.chmod(0o755)
    return path
