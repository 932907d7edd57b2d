"""What a reader of a topology report had to assume, repair or skip.

Publishers differ, and one malformed value must not exclude a node from scheduling. Every reader of a report records
here what it did instead; `NodeTopology.guesses` carries the records to `explain` and the log. They are data; sentences
are made elsewhere."""

from enum import StrEnum
from typing import Final

from msgspec import Struct


class GuessCode(StrEnum):
    """Every reason to doubt a report."""

    UNREADABLE = "unreadable"
    API_VERSION_UNKNOWN = "api-version-unknown"

    LEGACY_USED = "legacy-policy-used"
    LEGACY_OVERRIDDEN = "legacy-policy-overridden"
    LEGACY_UNKNOWN = "legacy-policy-unknown"
    LEGACY_EXTRA = "legacy-policy-extra"
    POLICY_ASSUMED = "policy-assumed"
    SCOPE_ASSUMED = "scope-assumed"
    MAX_ZONES_ASSUMED = "max-zones-assumed"
    SETTING_UNKNOWN = "setting-unknown"

    ATTRIBUTE_UNNAMED = "attribute-unnamed"
    ATTRIBUTE_DUPLICATE = "attribute-duplicate"
    FACT_MALFORMED = "fact-malformed"
    FACT_UNKNOWN = "fact-unknown"

    NO_ZONES = "no-zones"
    ZONE_TYPE_OTHER = "zone-type-other"
    ZONE_NAME_UNKNOWN = "zone-name-unknown"
    ZONE_NAME_ODD = "zone-name-odd"
    ZONE_DUPLICATE = "zone-duplicate"
    ZONE_PARENT = "zone-parent"
    ZONE_BEYOND_MASK = "zone-beyond-mask"

    RESOURCE_UNNAMED = "resource-unnamed"
    RESOURCE_DUPLICATE = "resource-duplicate"
    UNIT_ASSUMED = "unit-assumed"
    CPU_ABSENT = "cpu-absent"

    QUANTITY_MISSING = "quantity-missing"
    QUANTITY_UNREADABLE = "quantity-unreadable"
    QUANTITY_FLOAT = "quantity-float"
    QUANTITY_NEGATIVE = "quantity-negative"
    QUANTITY_ROUNDED = "quantity-rounded"
    QUANTITY_CLAMPED = "quantity-clamped"
    AVAILABLE_LOWERED = "available-lowered"
    ALLOCATABLE_ASSUMED = "allocatable-assumed"
    CAPACITY_RAISED = "capacity-raised"

    COST_ZONE_UNKNOWN = "cost-zone-unknown"
    COST_DUPLICATE = "cost-duplicate"
    COST_UNUSABLE = "cost-unusable"
    COST_MISSING = "cost-missing"

    FINGERPRINT_MALFORMED = "fingerprint-malformed"
    FINGERPRINT_METHOD_UNKNOWN = "fingerprint-method-unknown"
    FINGERPRINT_FROM_ANNOTATION = "fingerprint-from-annotation"
    FINGERPRINT_DISAGREES = "fingerprint-disagrees"
    PLACEMENT_INVALID = "placement-invalid"


ORDINARY: Final = frozenset(
    {
        GuessCode.LEGACY_USED,
        GuessCode.LEGACY_OVERRIDDEN,
        GuessCode.POLICY_ASSUMED,
        GuessCode.SCOPE_ASSUMED,
        GuessCode.MAX_ZONES_ASSUMED,
        GuessCode.FINGERPRINT_FROM_ANNOTATION,
        GuessCode.ZONE_TYPE_OTHER,
        GuessCode.ZONE_PARENT,
        GuessCode.CPU_ABSENT,
        GuessCode.COST_MISSING,
    }
)
"""Codes that valid reports of some publishers have: the reader neither skips nor repairs anything."""


class Guess(Struct, frozen=True):
    """One repair: the path, the value found there, and the value used instead (empty: it was skipped)."""

    code: GuessCode
    field: str
    found: str = ""
    used: str = ""
