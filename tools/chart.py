"""Writes the parts of charts/numalign that the deploy room knows: the schema of the values, rights, presets, alerts,
dashboard and CustomResourceDefinitions; alerts and dashboard also as files in examples. `make chart` runs it after
these change; a test says when that is needed."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import yaml

from numalign import __version__
from numalign.deploy import alerts, crds, dashboard, podpolicy, presets, rights
from numalign.deploy.model import Values
from numalign.deploy.objects import common
from numalign.deploy.operator import crds as operator
from numalign.deploy.rights import Holder, Right

CHART = Path(__file__).parents[1] / "charts/numalign"
EXAMPLES = CHART.parents[1] / "examples"
RULES_HEAD = "# Alerting rules for Prometheus, as rule_files take them; `make chart` writes them.\n"


def files() -> dict[Path, str]:
    """Every written file and its content."""
    made = {
        "values.schema.json": schema(),
        "files/rights.json": {
            "scheduler": [right(each) for each in rights.SCHEDULER],
            "extender": [right(each) for each in rights.EXTENDER],
            "agent": [right(each) for each in rights.AGENT],
            "gc": [right(each) for each in rights.COLLECTOR],
            "operator": [operator_right(each) for each in rights.OPERATOR],
        },
        "files/presets.json": msgspec.to_builtins(presets.LAYOUTS),
        "files/alerts.json": [*alerts.RULES],
        "files/ownreport.json": own_report(),
        "files/decisions.json": podpolicy.decisions("any")[0]["spec"],
        "files/directmode.json": podpolicy.manifest()[0]["spec"],
        **{f"files/crds/{each['metadata']['name']}.json": each for each in crds.every()},
        **{f"files/operator/{each['metadata']['name']}.json": each for each in operator.definitions()},
    }
    return {CHART / name: json.dumps(content, indent=2) + "\n" for name, content in made.items()} | {
        # The text of a ConfigMap, as `render` writes it.
        CHART / "files/dashboard.json": common.json_text(dashboard.dashboard()) + "\n",
        # For Prometheus and Grafana that Helm does not manage.
        EXAMPLES / "prometheus-rules.yaml": RULES_HEAD + yaml.safe_dump(alerts.group(), sort_keys=False, width=1000),
        EXAMPLES / "grafana-dashboard.json": common.json_text(dashboard.dashboard()) + "\n",
        CHART / "Chart.yaml": chart((CHART / "Chart.yaml").read_text()),
    }


def right(each: Right) -> dict[str, Any]:
    (role, _) = rights.roles(Holder("User", "any"), [each])
    return {
        "option": each.option,
        "namespace": each.namespace,
        "lease": each.group == rights.LEASES,
        "rule": role["rules"][0],
    }


def operator_right(each: Right) -> dict[str, Any]:
    """Its lease has a fixed name; @ stands for the namespace of the release."""
    namespace = "@" if each.namespace == rights.OPERATED else each.namespace
    return right(each) | {"lease": False, "namespace": namespace}


def own_report() -> dict[str, Any]:
    """The spec of the policy without the condition that names the account."""
    policy, _ = rights.own_report_policy(Holder("ServiceAccount", "any"))
    return {key: value for key, value in policy["spec"].items() if key != "matchConditions"}


def chart(text: str) -> str:
    return re.sub(r"(?m)^appVersion: .*$", f"appVersion: {__version__}", text)


def schema() -> dict[str, Any]:
    made = msgspec.json.schema(Values)
    written: dict[str, Any] = _strict(made, _in_lists(made))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **written}


def _in_lists(tree: Any) -> set[str]:
    """Names of the structs that are elements of lists: the defaults of the chart do not fill their fields."""
    if isinstance(tree, list):
        return set().union(*map(_in_lists, tree)) if tree else set()
    if not isinstance(tree, dict):
        return set()
    own = {tree["items"]["$ref"].rpartition("/")[2]} if "$ref" in tree.get("items", {}) else set()
    return own.union(*map(_in_lists, tree.values()))


def _strict(tree: Any, in_lists: set[str], name: str = "") -> Any:
    """Without defaults, which values.yaml has. A field that Helm's merge left out was set to null: refused."""
    if isinstance(tree, list):
        return [_strict(each, in_lists) for each in tree]
    if not isinstance(tree, dict):
        return tree
    result = {key: _strict(value, in_lists, key) for key, value in tree.items() if key not in ("default", "title")}
    if isinstance(tree.get("properties"), dict) and name not in in_lists and name not in INSIDE_GROUPS:
        result["required"] = sorted(tree["properties"])
    return result


INSIDE_GROUPS = {"Configz"}
"""A field of the agent, and of its groups, where it may be partial."""


def main() -> None:
    for path, content in files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


if __name__ == "__main__":
    main()
