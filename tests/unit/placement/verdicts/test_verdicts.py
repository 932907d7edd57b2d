"""A shape's table follows the rows: it looks again at those that changed, and at no others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.placement.columns import changelog, nodetotals
from numalign.placement.columns.changelog import Rows
from numalign.placement.columns.columns import Columns
from numalign.placement.columns.shapes import Shape, Shapes
from numalign.placement.decisions import Code
from numalign.placement.verdicts.verdicts import FEW, Verdicts, VerdictTable
from tests.unit.kubelet import made


class FreePods:
    """Judges rows by the number of pods on them, and notes which rows it was asked about."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.asked: list[int] = []

    def _row(self, table: VerdictTable, row: int) -> int:
        self.asked.append(row)
        score = (int(self.columns.pods[row]) + table.shape.number) % 101
        return Code.VACANT if self.columns.kind[row] == -1 else score

    def survey(self, table: VerdictTable, rows: Rows) -> None:
        table.codes[rows] = [self._row(table, row) for row in rows.tolist()]

    def survey_row(self, table: VerdictTable, row: int) -> None:
        table.codes[row] = self._row(table, row)


def shape(cpu: int = 1, shapes: Shapes | None = None) -> Shape:
    return (shapes or Shapes()).intern(made.pod("p", made.container("c", cpu=cpu)))


def cluster(nodes: int) -> tuple[Columns, FreePods, Verdicts]:
    columns = Columns()
    for number in range(nodes):
        columns.row(f"n{number}")
    judge = FreePods(columns)
    return columns, judge, Verdicts(columns, judge, most=2)


def test_a_new_shape_is_held_against_every_row() -> None:
    _, judge, verdicts = cluster(100)
    verdicts.table(shape())
    assert judge.asked == list(range(100))


def test_a_known_shape_is_held_against_changed_rows_only() -> None:
    columns, judge, verdicts = cluster(100)
    verdicts.table(shape())
    judge.asked.clear()
    columns.charge_totals(7, [], 3)
    table = verdicts.table(shape())
    assert (judge.asked, int(table.codes[7])) == ([7], 3)


@pytest.mark.parametrize("changed", [1, FEW, FEW + 1, 90], ids=str)
def test_few_and_many_changes_lead_to_the_same(changed: int) -> None:
    columns, _, verdicts = cluster(100)
    verdicts.table(shape())
    for row in range(changed):
        columns.charge_totals(row, [], row % 5)
    table = verdicts.table(shape())
    assert table.codes[:100].tolist() == columns.pods[:100].tolist()


def test_a_table_that_lags_too_far_is_made_anew() -> None:
    columns, judge, verdicts = cluster(10)
    verdicts.table(shape())
    judge.asked.clear()
    for _ in range(changelog.LENGTH + 1):
        columns.charge_totals(3, [], 1)
    verdicts.table(shape())
    assert judge.asked == list(range(10))


def test_an_answer_of_a_trial_holds_until_the_row_changes() -> None:
    columns, _, verdicts = cluster(10)
    verdicts.table(shape()).turn_down(4, Code.NOT_CERTAIN, "p")
    columns.charge_totals(5, [], 1)
    assert verdicts.table(shape()).codes[4] == Code.NOT_CERTAIN
    columns.charge_totals(4, [], 1)
    assert verdicts.table(shape()).codes[4] == 1


def test_rows_that_trials_turned_down_are_told_to_who_asks_soon() -> None:
    _, _, verdicts = cluster(100)
    table = verdicts.table(shape())
    for row in range(FEW + 1):
        table.turn_down(row, Code.NOT_CERTAIN, "uid-p")
    assert table.turned_down_since(FEW + 1) == []
    assert table.turned_down_since(FEW - 1) == [FEW - 1, FEW]
    assert table.turned_down_since(1) == list(range(1, FEW + 1))
    assert table.turned_down_since(0) is None


def test_the_shape_not_asked_for_longest_is_forgotten() -> None:
    _, judge, verdicts = cluster(3)
    known = Shapes()
    one, two, three = (shape(cpu, known) for cpu in (1, 2, 3))
    for each in (one, two, one, three):
        verdicts.table(each)
    judge.asked.clear()
    verdicts.table(one)
    assert judge.asked == []
    verdicts.table(two)
    assert judge.asked == [0, 1, 2]


@given(st.lists(st.tuples(st.integers(0, 80), st.booleans()), max_size=40))
def test_after_any_history_a_table_equals_one_made_from_nothing(history: list[tuple[int, bool]]) -> None:
    columns, judge, verdicts = cluster(10)
    for number, ask in history:
        columns.charge_totals(columns.row(f"n{number}"), [], 1)
        if number % 7 == 0:
            columns.drop(f"n{number}")
        if ask:
            verdicts.table(shape())
    kept, fresh = verdicts.table(shape()), Verdicts(columns, judge, most=2).table(shape())
    assert kept.codes.tolist() == fresh.codes.tolist()


def offered(**totals: int) -> Columns:
    columns = Columns()
    columns.set_totals(columns.row("n"), totals, 2)
    return columns


ROOM = {
    "as much as there is": ({"cpu": 1000, "memory": 1 << 30}, 0, True),
    "too little memory": ({"cpu": 1000, "memory": (1 << 30) - 1}, 0, False),
    "a resource that the node does not have": ({"cpu": 1000}, 0, False),
    "no room for another pod": ({"cpu": 1000, "memory": 1 << 30}, 2, False),
}


@pytest.mark.parametrize("totals, pods, fits", ROOM.values(), ids=ROOM)
def test_a_node_must_have_room_as_a_whole(totals: dict[str, int], pods: int, fits: bool) -> None:
    columns = offered(**totals)
    columns.charge_totals(0, [], pods)
    asked = nodetotals.totals(shape(1), columns)
    assert nodetotals.fits_row(columns, 0, asked) == fits


def test_what_is_not_asked_for_never_refuses() -> None:
    columns = offered(cpu=1000, memory=1 << 30)
    columns.charge_totals(0, [(columns.column("example.com/nic"), 5)], 0)
    assert nodetotals.fits_row(columns, 0, nodetotals.totals(shape(1), columns))
