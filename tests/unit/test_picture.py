"""The picture in the README shows what the demo prints today."""

from docs import draw_demo


def test_the_picture_is_what_the_demo_prints_in_a_terminal() -> None:
    assert draw_demo.PICTURE.read_text() == draw_demo.picture(draw_demo.printed())


def test_the_picture_loads_nothing_from_elsewhere() -> None:
    drawn = draw_demo.PICTURE.read_text()
    assert drawn.count("http") == drawn.count('xmlns="http') == 1
