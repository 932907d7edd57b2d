package main

import (
	"strconv"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	testing "k8s.io/cri-api/pkg/apis/testing"
)

const (
	// lasting is a pod's annotation: seconds by container, such as "prepare=2,main=30".
	lasting = "numalign.io/lab-seconds"
	look    = 200 * time.Millisecond
)

// end lets every container succeed whose time is up.
func end(service *testing.FakeRuntimeService, now time.Time) {
	service.Lock()
	defer service.Unlock()
	// The fake appends the name of every call to this list, and nothing reads it.
	service.Called = nil
	for _, container := range service.Containers {
		sandbox := service.Sandboxes[container.SandboxID]
		if sandbox == nil || container.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
			continue
		}
		lasts, told := seconds(sandbox.Annotations[lasting], container.Metadata.Name)
		if told && now.Sub(time.Unix(0, container.StartedAt)) >= lasts {
			container.State = runtimeapi.ContainerState_CONTAINER_EXITED
			container.FinishedAt = now.UnixNano()
		}
	}
}

func seconds(annotation, container string) (time.Duration, bool) {
	for _, entry := range strings.Split(annotation, ",") {
		name, text, _ := strings.Cut(entry, "=")
		number, err := strconv.ParseFloat(text, 64)
		if err == nil && name == container {
			return time.Duration(number * float64(time.Second)), true
		}
	}
	return 0, false
}
