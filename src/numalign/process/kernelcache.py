"""Lets numba load machine code from a folder that cannot be written to, such as that of a container image.

The image names `ReadableCache` in NUMBA_CACHE_LOCATOR_CLASSES, and numba imports it from there; nothing of ours does.
Numba's own locators first write a file into their folder, and pass it over if they cannot."""

import os

from numba.core.caching import UserProvidedCacheLocator


class ReadableCache(UserProvidedCacheLocator):
    """NUMBA_CACHE_DIR: written to where possible, and read in any case."""

    def ensure_cache_path(self) -> None:
        """Raises OSError where the folder is neither there nor can be made."""
        try:
            super().ensure_cache_path()  # type: ignore[no-untyped-call]
        except OSError:
            if not os.path.isdir(self._cache_path):
                raise
