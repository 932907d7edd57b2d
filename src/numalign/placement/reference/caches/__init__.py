"""The plugin's three caches, without its clock, clients and threads: facts go in, look-ups come out.

`selection.build` chooses one by the settings; all keep the promises of `cache.Cache`. They decide as the reference
does (scheduler plugin spec 10 to 15), except for its stalls, which are fixed: `repairs` lists them."""
