// Pods, reduced to what decides placement, and made whole again for the kubelet.

package cases

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Amounts are quantities as text, by resource.
type Amounts map[string]string

// Requirements are requests and limits, of a container or of the pod as a whole.
type Requirements struct {
	Requests Amounts `json:"requests,omitzero"`
	Limits   Amounts `json:"limits,omitzero"`
}

// Container is one container; a restartable one among the init containers is a sidecar.
type Container struct {
	Name        string `json:"name"`
	Restartable bool   `json:"restartable,omitempty"`
	Requirements
}

// Pod is what decides placement of a pod. QoS is an output, and only of sequences.
type Pod struct {
	UID          string        `json:"uid"`
	PodResources *Requirements `json:"pod_resources,omitempty"`
	Init         []Container   `json:"init,omitzero"`
	Containers   []Container   `json:"containers"`
	QoS          string        `json:"qos,omitempty"`
}

// Kubelet is the pod as the kubelet gets it from the API server. Its status is empty, so the class is computed.
func (p Pod) Kubelet() (*v1.Pod, error) {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(p.UID), Name: p.UID, Namespace: "default"}}
	var err error
	if p.PodResources != nil {
		pod.Spec.Resources = &v1.ResourceRequirements{}
		if *pod.Spec.Resources, err = p.PodResources.kubelet(); err != nil {
			return nil, fmt.Errorf("pod %s: pod_resources: %w", p.UID, err)
		}
	}
	if pod.Spec.InitContainers, err = kubeletContainers(p.Init); err != nil {
		return nil, fmt.Errorf("pod %s: init: %w", p.UID, err)
	}
	if pod.Spec.Containers, err = kubeletContainers(p.Containers); err != nil {
		return nil, fmt.Errorf("pod %s: containers: %w", p.UID, err)
	}
	return pod, nil
}

// InOrder lists the containers as the kubelet walks them: init containers, then the others.
func InOrder(pod *v1.Pod) []*v1.Container {
	var all []*v1.Container
	for i := range pod.Spec.InitContainers {
		all = append(all, &pod.Spec.InitContainers[i])
	}
	for i := range pod.Spec.Containers {
		all = append(all, &pod.Spec.Containers[i])
	}
	return all
}

// Find is the container of that name.
func Find(pod *v1.Pod, name string) (*v1.Container, error) {
	for _, container := range InOrder(pod) {
		if container.Name == name {
			return container, nil
		}
	}
	return nil, fmt.Errorf("pod %s has no container %q", pod.UID, name)
}

func kubeletContainers(given []Container) ([]v1.Container, error) {
	var containers []v1.Container
	for _, one := range given {
		resources, err := one.kubelet()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.Name, err)
		}
		container := v1.Container{Name: one.Name, Resources: resources}
		if one.Restartable {
			always := v1.ContainerRestartPolicyAlways
			container.RestartPolicy = &always
		}
		containers = append(containers, container)
	}
	return containers, nil
}

func (r Requirements) kubelet() (v1.ResourceRequirements, error) {
	requests, err := quantities(r.Requests)
	if err != nil {
		return v1.ResourceRequirements{}, fmt.Errorf("requests: %w", err)
	}
	limits, err := quantities(r.Limits)
	if err != nil {
		return v1.ResourceRequirements{}, fmt.Errorf("limits: %w", err)
	}
	return v1.ResourceRequirements{Requests: requests, Limits: limits}, nil
}

func quantities(amounts Amounts) (v1.ResourceList, error) {
	if amounts == nil {
		return nil, nil
	}
	list := make(v1.ResourceList, len(amounts))
	for name, text := range amounts {
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", name, text, err)
		}
		list[v1.ResourceName(name)] = quantity
	}
	return list, nil
}
