"""Numbers in Prometheus' text form."""

import pytest

from numalign.process import metrics
from numalign.process.metrics import Read, Registry


def test_a_counter_without_labels_is_there_before_anything_happened() -> None:
    registry = Registry()
    registry.counter("a_total", "What happened.")
    assert registry.text() == "# HELP a_total What happened.\n# TYPE a_total counter\na_total 0\n"


def test_label_values_are_counted_separately_and_rendered_in_order() -> None:
    registry = Registry()
    counter = registry.counter("a_total", "A.", ("result", "profile"))
    counter.add("ok", "p")
    counter.add("error", "p", by=2.5)
    counter.add("ok", "p")
    assert registry.text().splitlines()[2:] == [
        'a_total{result="error",profile="p"} 2.5',
        'a_total{result="ok",profile="p"} 2',
    ]


def test_a_gauge_is_what_it_was_set_to_last() -> None:
    registry = Registry()
    gauge = registry.gauge("a", "A.", ("queue",))
    gauge.set("active", to=3)
    gauge.set("active", to=1)
    assert registry.text().splitlines()[-1] == 'a{queue="active"} 1'


def test_buckets_of_a_histogram_include_the_ones_below() -> None:
    registry = Registry()
    histogram = registry.histogram("a_seconds", "A.", (0.5, 1.0), ("result",))
    for number in (0.5, 0.7, 3.0):
        histogram.observe("ok", number=number)
    assert registry.text().splitlines()[2:] == [
        'a_seconds_bucket{result="ok",le="0.5"} 1',
        'a_seconds_bucket{result="ok",le="1"} 2',
        'a_seconds_bucket{result="ok",le="+Inf"} 3',
        'a_seconds_sum{result="ok"} 4.2',
        'a_seconds_count{result="ok"} 3',
    ]


def test_a_histogram_counts_every_observation_at_any_time() -> None:
    registry, many = Registry(), 3 * metrics.AT_ONCE // 2
    histogram = registry.histogram("a_seconds", "A.", (0.5,))
    for number in range(many):
        histogram.observe(number=number % 2)
        if number == 10:
            assert list(histogram.counts()) == [((), 11)]
    assert registry.text().splitlines()[2:] == [
        f'a_seconds_bucket{{le="0.5"}} {many // 2}',
        f'a_seconds_bucket{{le="+Inf"}} {many}',
        f"a_seconds_sum {many // 2}",
        f"a_seconds_count {many}",
    ]


def test_a_read_metric_is_computed_at_scrape_time() -> None:
    registry, numbers = Registry(), {("a",): 1.0}
    registry.read(Read("gauge", "b", "B.", ("name",)), numbers.items)
    numbers["a",] = 2.0
    assert registry.text().endswith('# TYPE b gauge\nb{name="a"} 2\n')


def test_a_label_cannot_break_out_of_its_quotes() -> None:
    registry = Registry()
    registry.counter("a_total", "A.", ("name",)).add('x"\n\\')
    assert registry.text().splitlines()[-1] == r'a_total{name="x\"\n\\"} 1'


def test_two_families_of_one_name_are_a_mistake() -> None:
    registry = Registry()
    registry.counter("a_total", "A.")
    with pytest.raises(ValueError, match="metric family a_total is registered twice"):
        registry.gauge("a_total", "A.")


def test_bounds_grow_by_their_factor() -> None:
    assert metrics.exponential(1, 2, 5) == (1, 2, 4, 8, 16)
