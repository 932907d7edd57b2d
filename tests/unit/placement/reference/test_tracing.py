from numalign.placement.reference import tracing
from numalign.placement.reference.tracing import Trace

PODS = (("ns1", "n1"), ("ns1", "n2"), ("ns2", "n1"), ("ns3", "n1"), ("ns3", "n2"))
VALUE = "pfp0v001b92008c14168b3a6"


def test_a_trace_as_text_ends_with_what_was_computed_and_expected() -> None:
    lines = tracing.text(Trace("n", PODS, VALUE)).splitlines()
    assert lines[:3] == ['> processing node "n"', "> processing 5 pods", "+ ns1/n1"]
    assert lines[-2:] == [f"= {VALUE}", f"V {VALUE}"]


def test_a_trace_without_expectation_does_not_mention_one() -> None:
    assert tracing.text(Trace("n", PODS)).splitlines()[-1] == f"= {VALUE}"


def test_a_trace_as_json_leaves_out_what_is_empty() -> None:
    assert tracing.plain(Trace("")) == {"fingerprintComputed": "pfp0v001ef46db3751d8e999"}
    assert tracing.plain(Trace("n", PODS[:1], "x"))["pods"] == [{"Namespace": "ns1", "Name": "n1"}]


def test_a_trace_goes_to_the_sink_if_there_is_one() -> None:
    got: list[Trace] = []
    tracing.deliver(Trace("n"), got.append)
    tracing.deliver(Trace("m"), None)
    assert got == [Trace("n")]
