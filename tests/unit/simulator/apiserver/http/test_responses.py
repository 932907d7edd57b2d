"""Which form a client gets for what it accepts."""

import pytest

from numalign.simulator.apiserver.http import responses
from numalign.simulator.apiserver.storage.errors import StatusError

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
FORMS = {
    "": "plain",
    "*/*": "plain",
    "application/json": "plain",
    "application/json, */*": "plain",
    "application/json;q=0.9": "plain",
    TABLE: "table",
    f"{TABLE},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json": "table",
    "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json": "plain",
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1": "partial",
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1": "partial list",
    "application/vnd.kubernetes.protobuf,application/json": "plain",
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json": "plain",
    "application/yaml": "yaml",
}


@pytest.mark.parametrize("accept, form", FORMS.items(), ids=FORMS)
def test_the_first_form_that_can_be_had(accept: str, form: str) -> None:
    assert responses.negotiate(accept) == form


AVAILABLE = (
    "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "
    "application/json;stream=watch"
)
ACCEPTED = "only the following media types are accepted: application/json, application/yaml"
REJECTED = {
    "application/vnd.kubernetes.protobuf": AVAILABLE,
    "text/html": AVAILABLE,
    "application/json;as=Foo;v=v1": ACCEPTED,
}


@pytest.mark.parametrize("accept, message", REJECTED.items(), ids=REJECTED)
def test_other_forms_are_rejected_with_the_media_types_that_are_accepted(accept: str, message: str) -> None:
    with pytest.raises(StatusError) as caught:
        responses.negotiate(accept)
    assert (caught.value.code, caught.value.reason, caught.value.message) == (406, "NotAcceptable", message)
