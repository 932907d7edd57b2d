// Package nfd keeps the topology updater's module in go.mod; the binary is built from its own package.
package nfd

import _ "sigs.k8s.io/node-feature-discovery/pkg/nfd-topology-updater"
