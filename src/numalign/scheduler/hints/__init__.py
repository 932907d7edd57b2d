"""May this change help that pod? One function per plugin and kind of change, as the stock scheduler asks them.

`wakeups` lists which of them is asked when. A hint that says yes too often costs an attempt, one that says no too often
leaves a pod waiting for minutes: where not all is known, the answer is yes (kube-scheduler spec 3.6)."""
