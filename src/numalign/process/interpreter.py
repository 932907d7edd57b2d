"""The command lines with which numalign starts another Python process of its own.

Commands that run in the background, the lab's programs and the scheduler's compiler use it. `-P` keeps the current
folder out of the module path: a folder `numalign` that another user left in /tmp is never imported."""

import sys
from typing import Final

PYTHON: Final = (sys.executable, "-P")
NUMALIGN: Final = (*PYTHON, "-m", "numalign.cli")
