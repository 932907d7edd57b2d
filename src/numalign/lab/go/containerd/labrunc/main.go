// runc for nodes whose machine is simulated: it passes every call on, without the CPUs, memory nodes and huge pages that
// the real machine does not have. Other limits stay. LAB_RUNC is the path of the real runc.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	var err error
	switch command, rest := split(args); command {
	case "create", "run":
		err = changeBundle(rest)
	case "update":
		err = changeInput()
	}
	if err != nil {
		return err
	}
	runc := os.Getenv("LAB_RUNC")
	return fmt.Errorf("%s: %w", runc, syscall.Exec(runc, append([]string{runc}, args...), os.Environ()))
}

// split returns the sub-command and its arguments.
func split(args []string) (string, []string) {
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "--root" || arg == "--log" || arg == "--log-format" || arg == "--criu":
			i++
		case !strings.HasPrefix(arg, "-"):
			return arg, args[i+1:]
		}
	}
	return "", nil
}

func changeBundle(args []string) error {
	bundle := "."
	for i, arg := range args {
		if (arg == "--bundle" || arg == "-b") && i+1 < len(args) {
			bundle = args[i+1]
		} else if value, found := strings.CutPrefix(arg, "--bundle="); found {
			bundle = value
		}
	}
	file := filepath.Join(bundle, "config.json")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	config, err := decode(text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	// Tests read what containerd asked for.
	if err = os.WriteFile(file+".asked", text, 0o600); err != nil {
		return err
	}
	if linux, ok := config["linux"].(map[string]any); ok {
		if resources, ok := linux["resources"].(map[string]any); ok {
			strip(resources)
		}
	}
	text, err = json.Marshal(config)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

// changeInput replaces the resources on standard input, which is how containerd passes them.
func changeInput() error {
	text, err := io.ReadAll(os.Stdin)
	if err != nil || len(bytes.TrimSpace(text)) == 0 {
		return err
	}
	resources, err := decode(text)
	if err != nil {
		return fmt.Errorf("resources: %w", err)
	}
	strip(resources)
	if text, err = json.Marshal(resources); err != nil {
		return err
	}
	file, err := os.CreateTemp(os.TempDir(), "resources")
	if err != nil {
		return err
	}
	if err = os.Remove(file.Name()); err != nil {
		return err
	}
	if _, err = file.Write(text); err != nil {
		return err
	}
	if _, err = file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return syscall.Dup3(int(file.Fd()), 0, 0)
}

// decode keeps numbers as they are written: limits need all 64 bits.
func decode(text []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var found map[string]any
	err := decoder.Decode(&found)
	return found, err
}

func strip(resources map[string]any) {
	if cpu, ok := resources["cpu"].(map[string]any); ok {
		delete(cpu, "cpus")
		delete(cpu, "mems")
	}
	delete(resources, "hugepageLimits")
	if unified, ok := resources["unified"].(map[string]any); ok {
		for key := range unified {
			if strings.HasPrefix(key, "cpuset.") || strings.HasPrefix(key, "hugetlb.") {
				delete(unified, key)
			}
		}
	}
}
