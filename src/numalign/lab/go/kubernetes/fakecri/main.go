// Command fakecri is a container runtime that runs nothing: it serves the CRI on the unix socket that it is given, and
// every pod that is started on it is running at once. Containers run until they are stopped, unless the pod says in an
// annotation how many seconds each of them takes (see ends.go). Every image can be pulled (see images.go). It ends on a
// signal.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/cri-client/pkg/fake"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: fakecri unix:///path/to/socket")
		os.Exit(2)
	}
	runtime := fake.NewFakeRemoteRuntime()
	runtime.ImageService.SetFakeImageSize(imageSize)
	if err := runtime.Start(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "fakecri:", err)
		os.Exit(1)
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	ticks := time.NewTicker(look)
	for {
		select {
		case now := <-ticks.C:
			end(runtime.RuntimeService, now)
			forget(runtime.ImageService)
		case <-ended:
			runtime.Stop()
			return
		}
	}
}
