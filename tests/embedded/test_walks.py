"""Pages of the documentation whose commands run on an embedded cluster: what they show is what happens."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import conftest, walks
from tests.embedded import kubectl

PAGES = {
    "docs/use/pending-pod.md": "",
    "docs/use/deployer.md": "",
    "docs/use/plan.md": "",
    "docs/use/doctor.md": "",
    # A cluster to install in, in which no other tool has defined the reports.
    "docs/use/install.md": """
numalign cluster up bare --nodes 2 && export KUBECONFIG=~/.local/state/numalign/clusters/bare/kubeconfig &&
kubectl delete customresourcedefinition noderesourcetopologies.topology.node.k8s.io""",
}
"""By page: what is typed before it."""


@pytest.mark.built
@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_what_its_commands_print(page: str, tmp_path: Path) -> None:
    built = {name: kubectl.program(name) for name in ("kubectl", "helm3")}
    conftest.require(all(built.values()), "Go, to build kubectl and Helm")
    installed = Path(sys.executable).parent
    programs = {name.rstrip("3"): program for name, program in built.items() if program is not None}
    programs |= {name: installed / name for name in ("numalign", "kubectl-numalign")}
    with walks.shell(tmp_path, programs) as shell:
        try:
            code, said = shell.type(PAGES[page] or ":")
            assert code == 0, said
            assert walks.walk(walks.ROOT / page, shell) > 0
        finally:
            shell.type("for each in $(ls ~/.local/state/numalign/clusters); do numalign cluster down $each; done")
