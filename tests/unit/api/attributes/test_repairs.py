"""Every reason to doubt a report is explained on the page about attributes."""

import re
from pathlib import Path

from numalign.api.attributes.repairs import GuessCode

PAGE = Path(__file__).parents[4] / "docs" / "concepts" / "attributes.md"


def test_the_page_explains_every_code_and_no_other() -> None:
    table = PAGE.read_text().rpartition("| code |")[2]
    first_columns = re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE)
    assert set(re.findall(r"`([a-z-]+)`", " ".join(first_columns))) == {code.value for code in GuessCode}
