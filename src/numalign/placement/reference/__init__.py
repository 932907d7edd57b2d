"""The decisions of the scheduler plugin NodeResourceTopologyMatch, exactly reproduced.

`demand` prepares a pod and `numanodes` a topology report; `filter` and `scoring` compare
them, `eviction` is its part in preemption. Where the plugin crashes or is plainly wrong, these modules return a
sensible result; every such place is listed in docs/compatibility/plugin.md."""
