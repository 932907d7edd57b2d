//go:build tools

// Package kubeconform keeps the module of kubeconform in go.mod; the binary is built from that package.
package kubeconform

import _ "github.com/yannh/kubeconform/cmd/kubeconform"
