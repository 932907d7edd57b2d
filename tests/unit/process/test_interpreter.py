"""Processes that numalign starts run the installed numalign, never code from the current folder."""

import re
import subprocess
from pathlib import Path

import pytest

from numalign.process.interpreter import NUMALIGN, PYTHON

SOURCE = Path(__file__).parents[3] / "src/numalign"
ALLOWED = {"process/interpreter.py", "lab/launching.py"}
"""The lab's launcher is a script that imports nothing of numalign; it runs isolated (-I -S)."""


@pytest.mark.parametrize("words", [(*NUMALIGN, "--help"), (*PYTHON, "-c", "import numalign")], ids=["-m", "-c"])
def test_a_package_of_our_name_in_the_current_folder_is_not_run(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "numalign").mkdir()
    (tmp_path / "numalign/__init__.py").write_text("raise SystemExit('code of the current folder ran')")
    ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_no_other_module_starts_an_interpreter() -> None:
    named = {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if "sys.executable" in path.read_text()}
    assert named == ALLOWED
    assert re.search(r'sys\.executable, "-I", "-S"', (SOURCE / "lab/launching.py").read_text())
