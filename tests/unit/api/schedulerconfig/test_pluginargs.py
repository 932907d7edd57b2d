"""A profile's plugin settings are read as the stock scheduler reads and completes them."""

from numalign.api.decode import decode
from numalign.api.schedulerconfig import pluginargs
from numalign.api.schedulerconfig.pluginargs import NodeAffinityArgs, NodeResourcesFitArgs, ResourceSpec


def test_the_defaults_are_the_stock_schedulers() -> None:
    read = decode.decode(NodeResourcesFitArgs, {})
    assert read.scoring_strategy.type == "LeastAllocated"
    assert read.scoring_strategy.resources == (ResourceSpec(name="cpu"), ResourceSpec(name="memory"))
    assert decode.decode(NodeAffinityArgs, {}).added_affinity.required is None


def test_a_strategy_is_read_with_its_shape_and_weights() -> None:
    written = {
        "type": "RequestedToCapacityRatio",
        "resources": [{"name": "example.com/gpu", "weight": 5}, {"name": "cpu"}],
        "requestedToCapacityRatio": {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]},
    }
    read = decode.decode(NodeResourcesFitArgs, {"scoringStrategy": written}).scoring_strategy
    assert read.type == pluginargs.REQUESTED_TO_CAPACITY_RATIO
    assert [spec.weight for spec in read.resources] == [5, 1]
    assert [(point.utilization, point.score) for point in read.requested_to_capacity_ratio.shape] == [(0, 0), (100, 10)]
