"""What the API server does to objects before it keeps them: it fills in defaults, and refuses what makes no sense.

`prepare` completes an object as the real server's defaulting and its default admission plugins do, `errors` finds what
breaks a rule; creates and updates call the one, then the other. Left out, on purpose: tokens mounted into pods,
overhead by runtime class, the amounts of limit ranges and quotas, the not-ready taint of new nodes."""

from numalign.simulator.apiserver.defaults.kinds import prepare
from numalign.simulator.apiserver.validation.kinds import errors

__all__ = ["errors", "prepare"]
