"""The admission of the embedded API server: defaulting and validation of built-in kinds.

Pass this module as `admission` to `Api`. `prepare` completes an object as the real server's defaulting and its default
admission plugins do; `errors` validates it. Create and update call the one, then the other. Not implemented: mounted
service account tokens, the amounts of limit ranges and quotas, the not-ready taint of new nodes."""

from numalign.simulator.apiserver.defaults.kinds import prepare
from numalign.simulator.apiserver.validation.kinds import errors

__all__ = ["errors", "prepare"]
