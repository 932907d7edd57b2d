//go:build tools

// Package helm3 keeps the module of Helm 3 in go.mod; the binary is built from that package.
package helm3

import _ "helm.sh/helm/v3/cmd/helm"
