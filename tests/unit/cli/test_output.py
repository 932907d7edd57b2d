"""Results on stdout, complaints on stderr, and an exit code."""

import errno
import json

import pytest
import typer
import yaml
from msgspec import Struct

from numalign.cli import output
from numalign.cli.output import Format


class Answer(Struct, rename="camel"):
    zone_ids: tuple[int, ...]
    by_zone: dict[int, str]


ANSWER = Answer((0, 1), {0: "ü"})
PLAIN = {"zoneIds": [0, 1], "byZone": {"0": "ü"}}


def test_json_is_one_object_with_plain_keys() -> None:
    assert json.loads(output.structured(ANSWER, Format.JSON)) == PLAIN


def test_yaml_has_the_same_content() -> None:
    assert yaml.safe_load(output.structured(ANSWER, Format.YAML)) == PLAIN


def test_yaml_repeats_instead_of_pointing() -> None:
    shared = [1]
    assert "*" not in output.structured({"a": shared, "b": shared}, Format.YAML)


def test_numbers_larger_than_any_machine_word_are_written_out() -> None:
    assert json.loads(output.structured({"steps": 2**200}, Format.JSON)) == {"steps": 2**200}


def test_keys_keep_their_order() -> None:
    assert output.structured({"b": 1, "a": 2}, Format.YAML) == "b: 1\na: 2"


def test_fail_prints_the_reason_on_stderr_and_exits(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as left:
        output.fail("no such thing")
    assert left.value.exit_code == 2
    assert capsys.readouterr() == ("", "numalign: no such thing\n")


def test_warnings_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    output.warn("mind the gap")
    assert capsys.readouterr() == ("", "numalign: warning: mind the gap\n")


def test_a_result_that_cannot_be_written_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(message: object, err: bool = False) -> None:
        if not err:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(typer, "echo", full)
    with pytest.raises(typer.Exit) as left:
        output.show("answer")
    assert left.value.exit_code == 2


def test_a_reader_that_went_away_is_left_to_typer(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(message: object) -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(typer, "echo", closed)
    with pytest.raises(BrokenPipeError):
        output.show("answer")


def test_nothing_from_outside_steers_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    output.warn("a\x1b[2J\u202eb\nc")
    assert capsys.readouterr().err == "numalign: warning: a\\x1b[2J\\u202eb\\nc\n"
