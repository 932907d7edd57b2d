"""The example in the documentation does what the page says."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_example_prints_what_the_page_shows() -> None:
    ran = subprocess.run(
        [sys.executable, "examples/place_pods.py"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ran.stdout in (ROOT / "docs" / "concepts" / "placement.md").read_text()
