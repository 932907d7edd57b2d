//go:build tools

// Package helm4 keeps the module of Helm 4 in go.mod; the binary is built from that package.
package helm4

import _ "helm.sh/helm/v4/cmd/helm"
