"""What every object's metadata must keep to: its name, labels, annotations, owners and finalizers."""

from typing import Final

from numalign.simulator.apiserver.schemas import fielderrors
from numalign.simulator.apiserver.storage import names, resources
from numalign.simulator.apiserver.storage.errors import StatusCause
from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.apiserver.validation import rules
from numalign.simulator.trees import Tree

LABELLED: Final = frozenset({resources.NAMESPACES.home, resources.SERVICES.home})
IN_PATHS: Final = frozenset(
    each.home
    for each in (
        resources.ROLES,
        resources.ROLEBINDINGS,
        resources.CLUSTERROLES,
        resources.CLUSTERROLEBINDINGS,
    )
)
STANDARD_FINALIZERS: Final = frozenset({"orphan", "foregroundDeletion", "kubernetes"})
LARGEST_ANNOTATIONS: Final = 256 * 1024
OWNER_FIELDS: Final = ("apiVersion", "kind", "name", "uid")
UNQUALIFIED: Final = "name is neither a standard finalizer name nor is it fully qualified"


def errors(resource: Resource, metadata: Tree, old: Tree | None) -> list[StatusCause]:
    found = _labels(metadata)
    if metadata.get("ownerReferences"):
        found += _owners(metadata["ownerReferences"])
    if metadata.get("finalizers"):
        found += _finalizers(metadata["finalizers"])
    return found if old is not None else [*_name(resource, metadata), *found]


def name_rule(resource: Resource) -> rules.NameRule:
    if resource.home in LABELLED:
        return rules.label_problems
    return rules.path_problems if resource.home in IN_PATHS else rules.subdomain_problems


def _name(resource: Resource, metadata: Tree) -> list[StatusCause]:
    rule, found = name_rule(resource), list[StatusCause]()
    base, name = metadata.get("generateName"), metadata.get("name", "")
    if not name:
        return [fielderrors.NO_NAME]
    if base:
        # What is appended to it makes a hyphen at its end harmless.
        found += [rules.invalid("metadata.generateName", base, each) for each in rule(f"{base.rstrip('-')}a"[-63:])]
    return found + rules.named("metadata.name", name, rule)


def _labels(metadata: Tree) -> list[StatusCause]:
    found = rules.label_map("metadata.labels", metadata.get("labels"))
    annotations = metadata.get("annotations")
    if annotations:
        for key in annotations:
            found += rules.named("metadata.annotations", key, lambda each: names.key_problems(each.lower()))
        size = sum(len(key) + len(value) for key, value in annotations.items())
        if size > LARGEST_ANNOTATIONS:
            found.append(fielderrors.too_long("metadata.annotations", LARGEST_ANNOTATIONS))
    return found


def _owners(owners: list[Tree]) -> list[StatusCause]:
    found = []
    for index, owner in enumerate(owners):
        path = f"metadata.ownerReferences[{index}]"
        absent = [field for field in OWNER_FIELDS if not owner.get(field)]
        found += [rules.required(f"{path}.{field}", "must not be empty") for field in absent]
    controllers = [f"{each.get('kind')}/{each.get('name')}" for each in owners if each.get("controller")]
    if len(controllers) > 1:
        why = f'Only one reference can have Controller set to true. Found "true" in references for {controllers[0]}'
        found.append(rules.invalid("metadata.ownerReferences", owners, f"{why} and {controllers[1]}"))
    return found


def _finalizers(finalizers: list[str]) -> list[StatusCause]:
    found = []
    for index, finalizer in enumerate(finalizers):
        found += rules.named("metadata.finalizers", finalizer, names.key_problems)
        if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
            found.append(rules.invalid(f"metadata.finalizers[{index}]", finalizer, UNQUALIFIED))
    return found
