"""Files with secrets: their mode is that of no earlier file, and links lead nowhere."""

import os
import stat
from pathlib import Path

import pytest

from numalign.process import privatefile


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_only_the_owner_reads_the_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    privatefile.write(file, "secret")
    assert (file.read_text(), mode(file)) == ("secret", 0o600)


def test_the_mode_of_an_earlier_file_does_not_count(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("old")
    file.chmod(0o666)
    with open(file) as held:
        privatefile.write(file, b"secret")
        assert (held.read(), file.read_text(), mode(file)) == ("old", "secret", 0o600)


@pytest.mark.parametrize("target", ["there", "absent"])
def test_a_link_is_replaced_and_not_followed(target: str, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("old")
    file = tmp_path / "key"
    file.symlink_to(tmp_path / target)
    privatefile.write(file, "secret")
    assert (file.is_symlink(), file.read_text(), (tmp_path / "there").read_text()) == (False, "secret", "old")
    assert not (tmp_path / "absent").exists()


def test_a_write_that_fails_leaves_the_earlier_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "key"
    privatefile.write(file, "old")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        privatefile.write(file, "new")
    assert (os.listdir(tmp_path), file.read_text()) == (["key"], "old")
