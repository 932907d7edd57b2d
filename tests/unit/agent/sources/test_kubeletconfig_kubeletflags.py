"""A kubelet's command line as fields of its configuration."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.agent.sources import kubeletconfig
from numalign.api import errors

FLAGS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "with a sign of equality": (("--cpu-manager-policy=static",), {"cpuManagerPolicy": "static"}),
    "with a space": (("--cpu-manager-policy", "static"), {"cpuManagerPolicy": "static"}),
    "underscores": (("--cpu_manager_policy=static",), {"cpuManagerPolicy": "static"}),
    "the last one counts": (("--max-pods=1", "--max-pods=2"), {"maxPods": 2}),
    "flags of no interest": (("-v=2", "--fail-swap-on", "--node-ip", "10.0.0.1"), {}),
    "nothing after two dashes": (("--", "--max-pods=1"), {}),
    "maps add up": (("--kube-reserved=cpu=1, memory=1Gi", "--kube-reserved=pid=9"),
                    {"kubeReserved": {"cpu": "1", "memory": "1Gi", "pid": "9"}}),
    "thresholds": (("--eviction-hard=memory.available<1Gi,nodefs.available<5%",),
                   {"evictionHard": {"memory.available": "1Gi", "nodefs.available": "5%"}}),
    "one option for each flag": (("--cpu-manager-policy-options=full-pcpus-only=true",),
                                 {"cpuManagerPolicyOptions": {"full-pcpus-only": "true"}}),
    "memory of zones": (("--reserved-memory", "0:memory=1Gi,hugepages-1Gi=2Gi;1:memory=2Gi"),
                        {"reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi", "hugepages-1Gi": "2Gi"}},
                                            {"numaNode": 1, "limits": {"memory": "2Gi"}}]}),
    "gates": (("--feature-gates=A=true,B=false",), {"featureGates": {"A": True, "B": False}}),
}  # fmt: skip


@pytest.mark.parametrize("arguments, fields", FLAGS.values(), ids=FLAGS)
def test_flags_are_fields(arguments: tuple[str, ...], fields: dict[str, Any]) -> None:
    assert kubeletconfig.read_flags(arguments).overrides == fields


def test_flags_name_files_and_folders() -> None:
    line = kubeletconfig.read_flags(["--config=/etc/k.yaml", "--config-dir", "/etc/k.d", "--root-dir=/srv/kubelet"])
    assert (line.config, line.config_dir, line.root_dir) == ("/etc/k.yaml", "/etc/k.d", "/srv/kubelet")


@pytest.mark.parametrize("flag", ["--max-pods=many", "--kube-reserved=cpu", "--reserved-memory=0", "--max-pods"])
def test_what_the_kubelet_would_not_read_is_refused(flag: str) -> None:
    with pytest.raises(errors.BadObject, match="nothing a kubelet reads"):
        kubeletconfig.read_flags([flag])
