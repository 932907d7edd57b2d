// What the managers are told about pods: which are active, and that the list is complete.

package managers

import (
	"runtime"
	"sync"

	v1 "k8s.io/api/core/v1"
)

// Ready are pod sources that have all been seen, so that managers may collect what inactive pods held.
type Ready struct{}

// AddSource does nothing.
func (Ready) AddSource(string) {}

// AllReady is true.
func (Ready) AllReady() bool { return true }

// Active is the kubelet's list of active pods, in the order of their arrival.
type Active struct {
	mutex sync.Mutex
	pods  []*v1.Pod
}

// List is the list as it is now.
func (a *Active) List() []*v1.Pod {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return append([]*v1.Pod{}, a.pods...)
}

// Add makes a pod active.
func (a *Active) Add(pod *v1.Pod) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.pods = append(a.pods, pod)
}

// Remove makes a pod inactive; one that is not active already is.
func (a *Active) Remove(uid string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for i, pod := range a.pods {
		if string(pod.UID) == uid {
			a.pods = append(a.pods[:i:i], a.pods[i+1:]...)
			return
		}
	}
}

// Find is the active pod of that uid, or nil.
func (a *Active) Find(uid string) *v1.Pod {
	for _, pod := range a.List() {
		if string(pod.UID) == uid {
			return pod
		}
	}
	return nil
}

// ForReconciling is the list as given to a CPU manager whose policy is not none. Once started it reconciles in a goroutine of its own, at once
// and then periodically, and cannot be told to stop. The list is first read there to collect what inactive pods held,
// then to update cgroups, which is no concern of the oracle: the second reading ends the goroutine. Wait returns when
// that has happened; nobody else may ask the manager anything before.
func (a *Active) ForReconciling() (list func() []*v1.Pod, wait func()) {
	reconciled := make(chan struct{})
	readings := 0
	list = func() []*v1.Pod {
		readings++
		if readings == 2 {
			close(reconciled)
			runtime.Goexit()
		}
		return a.List()
	}
	return list, func() { <-reconciled }
}
