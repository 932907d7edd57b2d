"""What this room counts, as plain numbers; `process.metrics` gives them names and serves them.

One `Metrics` is shared by a client and everything that runs on it. All of it only grows."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field


@dataclass
class Metrics:
    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Answers by verb and code; the code of a call without an answer is <error>, as in client-go."""
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Seconds spent waiting for answers, by verb; streams count until their first line."""
    retries: Counter[str] = field(default_factory=Counter)
    """Repeated calls, by verb."""
    limited_seconds: float = 0.0
    """Seconds spent waiting for the client-side rate limit."""
    connections: int = 0
    relists: Counter[str] = field(default_factory=Counter)
    """Lists of a resource, by plural, including the first."""
    watches: Counter[str] = field(default_factory=Counter)
    watch_events: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Watch events by plural and type; duplicates have a type of their own."""
    unreadable: Counter[str] = field(default_factory=Counter)
    """Objects that were skipped because they could not be decoded, by plural."""
    events_dropped: int = 0

    def answered(self, verb: str, code: str, seconds: float) -> None:
        self.requests[verb, code] += 1
        self.seconds[verb] += seconds
