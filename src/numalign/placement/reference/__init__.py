"""What the scheduler plugin NodeResourceTopologyMatch decides, bit for bit, for people who come from it.

`args` reads its settings, `demand` prepares a pod and `numanodes` a topology report; `filter` and `scoring` hold one
against the other, `victims` and `eviction` are its part in preemption. Where the plugin crashes or is plainly wrong
these modules answer something sensible; every such place is listed in docs/compatibility/plugin.md."""
