// Command oracle-reference asks NodeResourceTopologyMatch of scheduler-plugins v0.34.7: histories of a cluster in on stdin,
// the plugin's answer to each step out on stdout, both as JSON lines. What a history is, is in package history.
package main

import (
	"numalign.io/lab/reference/oracle/history"
	"numalign.io/lab/reference/oracle/program"
)

func main() { program.Main("oracle-reference", history.Ask) }
