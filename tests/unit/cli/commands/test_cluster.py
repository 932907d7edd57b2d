"""Whether a cluster serves TLS: as asked, else where certificates can be made. And the choices of options."""

from __future__ import annotations

from typing import get_args

import pytest

from numalign.cli import options
from numalign.cli.commands import cluster
from numalign.kubelet import settings
from numalign.process import certificates
from numalign.simulator.scenarios import nodegroups

ASKED = {
    "by default": (None, True, True, False),
    "without the package": (None, False, False, True),
    "as asked": (True, False, True, False),
    "as asked, without": (False, True, False, False),
}


@pytest.mark.parametrize("asked, available, secure, warned", ASKED.values(), ids=ASKED)
def test_a_cluster_serves_tls_unless_it_cannot(
    asked: bool | None,
    available: bool,
    secure: bool,
    warned: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(certificates, "are_available", lambda: available)
    assert cluster._is_secure(asked) is secure
    assert ("every user of this machine" in capsys.readouterr().err) is warned


def test_choices_are_those_of_the_models() -> None:
    assert tuple(map(str, options.Policy)) == get_args(settings.TopologyPolicy)
    assert tuple(map(str, options.Scope)) == get_args(settings.TopologyScope)
    assert tuple(map(str, cluster.ReportPublisher)) == nodegroups.DIALECTS
