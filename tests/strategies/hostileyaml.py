"""YAML texts that are short and cost a careless parser its stack, its memory or minutes; every reader refuses them."""

from typing import Final

BOMB: Final = "".join(f"b{level}: &b{level} [{', '.join([f'*b{level - 1}'] * 8)}]\n" for level in range(1, 8))
"""Each level refers eight times to the one below."""

ATTACKS: Final = {
    "nested deeply": ("x: " + "[" * 101 + "]" * 101, "nested more than 100 levels deep"),
    "aliases that multiply": (f"b0: &b0 [x]\n{BOMB}", "its aliases stand for more than 1,000,000 values"),
    "aliases of long text": (
        f"b0: &b0 {'x' * 100_000}\nb1: [{', '.join(['*b0'] * 1000)}]",
        "its aliases stand for more than",
    ),
    "an alias of what it is part of": ("&a {x: *a}", "an alias refers to what it is part of"),
    "a number in base 60": ("x: 1" + ":59" * 200, "a number of more than 400 characters"),
    "a tag": ("x: !!python/tuple [1]", "is nothing that Kubernetes reads"),
}
