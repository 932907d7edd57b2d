"""Pages of the documentation whose commands run on an embedded cluster: what they show is what happens."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import conftest, walks
from tests.embedded import kubectl

PAGES = ["docs/use/pending-pod.md", "docs/use/deployer.md"]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_what_its_commands_print(page: str, tmp_path: Path) -> None:
    program = kubectl.program()
    conftest.require(program, "Go, to build kubectl")
    assert program is not None
    installed = Path(sys.executable).parent
    programs = {"kubectl": program, **{name: installed / name for name in ("numalign", "kubectl-numalign")}}
    with walks.shell(tmp_path, programs) as shell:
        try:
            assert walks.walk(walks.ROOT / page, shell) > 0
        finally:
            shell.type("for each in $(ls ~/.local/state/numalign/clusters); do numalign cluster down $each; done")
