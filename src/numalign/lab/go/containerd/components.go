// Package components keeps the modules of every program that is built here in go.mod: the binaries themselves are built
// from their own packages in github.com/containerd/containerd/v2.
package components

import (
	_ "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2/manager"
	_ "github.com/containerd/containerd/v2/cmd/containerd/builtins"
	_ "github.com/containerd/containerd/v2/cmd/containerd/command"
	_ "github.com/containerd/containerd/v2/cmd/ctr/app"
)
