// Package sysfs gives a worker a /sys of its own, with the memory of a made-up machine in it.
package sysfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"numalign.io/lab/kubelet/oracle/sandbox"
)

const root = "/sys"

// Enter puts an empty folder over /sys. It mounts only in a namespace other than the one named outside.
func Enter(outside string) error {
	if outside == "" || sandbox.Namespace() == outside {
		return errors.New("a /sys of its own needs a mount namespace, and none could be made on this machine")
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := syscall.Mount("tmpfs", root, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "mode=0755"); err != nil {
		return fmt.Errorf("mounting a tmpfs over %s: %w", root, err)
	}
	return nil
}

// Write replaces everything below /sys by these files.
func Write(files map[string]string) error {
	entries, err := os.ReadDir(root)
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(root, entry.Name())))
	}
	if err != nil {
		return err
	}
	return WriteBelow(root, files)
}

// WriteBelow makes files in a folder. A path that ends in a slash is a folder.
func WriteBelow(folder string, files map[string]string) error {
	for path, text := range files {
		file := filepath.Join(folder, path)
		if strings.HasSuffix(path, "/") {
			if err := os.MkdirAll(file, 0o755); err != nil {
				return err
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
