//go:build tools

// Package helmunittest keeps the module of helm-unittest in go.mod; the binary is built from that package.
package helmunittest

import _ "github.com/helm-unittest/helm-unittest/cmd/helm-unittest"
