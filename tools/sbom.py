"""Writes the software bill of materials of the product in CycloneDX form: every package that an installation brings.

`make sbom` runs it. The pinned requirements of the product and its extras are the input, so the bill has the version
and the hashes of every package. The tool is cyclonedx-py; it reads the version of the product from pyproject.toml,
where ours is not written, so it gets a copy that has it."""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from numalign import __version__

ROOT: Final = Path(__file__).parents[1]
SHIPPED: Final = ("runtime", "tls", "dashboard", "fast")


def main(target: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        project, pins = Path(folder, "pyproject.toml"), Path(folder, "requirements.txt")
        text = (ROOT / "pyproject.toml").read_text()
        project.write_text(text.replace('dynamic = ["version"]', f'version = "{__version__}"'))
        pins.write_text("".join((ROOT / f"requirements/{name}.txt").read_text() for name in SHIPPED))
        # Without -W it warns that requirement files do not say which package needs which.
        tool = [sys.executable, "-P", "-W", "ignore", "-m", "cyclonedx_py", "requirements", str(pins)]
        form = ["--short-PURLs", "--output-reproducible", "--of", "JSON", "-o", target]
        subprocess.run([*tool, "--pyproject", str(project), *form], check=True)


if __name__ == "__main__":
    main(sys.argv[1])
