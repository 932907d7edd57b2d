"""Helm as people type it, of both major versions, and what it makes of the chart."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from numalign.api.decode import fields, yamltext
from numalign.deploy.release import Release

Object = dict[str, Any]
CHART: Final = Path(__file__).parents[2] / "charts/numalign"
VERSIONS: Final = ("helm3", "helm4")
PATIENCE: Final = 120


class Ran(NamedTuple):
    code: int
    out: str
    """What it printed on stdout."""
    told: str
    """What it printed on stderr."""


class Helm(NamedTuple):
    program: Path
    home: Path
    """For its caches and its configuration."""
    kubeconfig: Path = Path(os.devnull)

    def run(self, *words: str, stdin: str = "") -> Ran:
        own = {"KUBECONFIG": str(self.kubeconfig), "HOME": str(self.home), "HELM_DRIVER": "secret"}
        ran = subprocess.run(
            [self.program, *words],
            input=stdin,
            env={**os.environ, **own},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        return Ran(ran.returncode, ran.stdout, ran.stderr)

    def said(self, *words: str, stdin: str = "") -> str:
        """What a command that has to succeed says."""
        ran = self.run(*words, stdin=stdin)
        assert ran.code == 0, f"helm {' '.join(words)}: {ran.out}{ran.told}"
        return ran.out

    def template(self, document: Object, release: Release) -> list[Object]:
        """The objects that the chart makes of a values file."""
        apis = [word for api in sorted(release.api_versions) for word in ("--api-versions", api)]
        words = ("template", release.name, str(CHART), "-n", release.namespace, "--values", "-")
        text = self.said(*words, "--kube-version", release.kube_version, *apis, stdin=json.dumps(document))
        return [
            fields.named(fields.root(each.value, "Object", "")) for each in yamltext.documents(text, "helm template")
        ]


def known(objects: Sequence[Object]) -> dict[tuple[str, str, str], Object]:
    """By kind, namespace and name: Helm has an order of its own."""
    found = {(each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each for each in objects}
    assert len(found) == len(objects)
    return found
