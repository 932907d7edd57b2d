// Package etcd keeps the server's module in go.mod; the binary is built from go.etcd.io/etcd/server/v3 itself.
package etcd

import _ "go.etcd.io/etcd/server/v3/etcdmain"
