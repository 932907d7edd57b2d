"""Names and identities that the server gives: uids, and the end of a name that a client left open."""

import random
from typing import Final

# Without vowels and look-alikes: nothing offensive, nothing misread.
ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX: Final = 5
LONGEST_BASE: Final = 63 - SUFFIX


def generated(base: str, chance: random.Random) -> str:
    return base[:LONGEST_BASE] + "".join(chance.choices(ALPHABET, k=SUFFIX))


def uid(chance: random.Random) -> str:
    """A random UUID of version 4, written without the detour over an object: every create needs one."""
    digits = f"{chance.getrandbits(128):032x}"
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"
