// Command oracle-kubelet asks the managers of Kubernetes 1.35. All it does is in the oracle module; here is only what
// makes it this minor: the pinned version in go.mod, and the adapter for its signatures.
package main

import "numalign.io/lab/kubelet/oracle/program"

func main() { program.Main(kubelet{}) }
