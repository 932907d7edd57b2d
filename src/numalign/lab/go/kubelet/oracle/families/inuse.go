// Devices in use, pieced together from what the device manager tells pod by pod.

package families

import (
	"slices"

	"numalign.io/lab/kubelet/oracle/cases"
)

// inUse lists devices held by any pod that was ever seen, by resource. Containers of a pod may share devices.
func (l *life) inUse() map[string][]string {
	all := map[string][]string{}
	for _, pod := range l.seen {
		for _, container := range cases.InOrder(pod) {
			for resource, ids := range l.devicesOf(pod, container) {
				all[resource] = append(all[resource], ids...)
			}
		}
	}
	for resource, ids := range all {
		slices.Sort(ids)
		all[resource] = slices.Compact(ids)
	}
	return all
}
