// Package sandbox gives a worker folders of its own where the kubelet's code insists on fixed paths.
//
// The device manager keeps its socket and checkpoint in /var/lib/kubelet/device-plugins, whatever it is told. Workers
// therefore run in a user and a mount namespace of their own, with a tmpfs over that place: nothing outside sees it, and
// nothing of a kubelet that really runs on the machine is touched.
package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const (
	varLib      = "/var/lib"
	kubelet     = varLib + "/kubelet"
	plugins     = kubelet + "/device-plugins"
	checkpoints = kubelet + "/oracle"
)

// Ways are the namespaces that a worker may live in, the better one first.
func Ways() []*syscall.SysProcAttr {
	separated := []*syscall.SysProcAttr{attributes()}
	if os.Geteuid() == 0 {
		separated = append(separated, rootAttributes())
	}
	return separated
}

// attributes are the process attributes of a separated worker. An ordinary user is root inside.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
}

// rootAttributes separate a worker of root where user namespaces are switched off.
func rootAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
}

// Namespace names the mount namespace of this process.
func Namespace() string {
	name, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return ""
	}
	return name
}

// Enter prepares the folders. It mounts only in a namespace other than the one named outside.
func Enter(outside string) error {
	if err := enter(outside); err != nil {
		return fmt.Errorf("device manager and sequences need a mount namespace of their own: %w", err)
	}
	return nil
}

func enter(outside string) error {
	if outside == "" || Namespace() == outside {
		return errors.New("neither a user namespace nor, as root, a mount namespace could be made on this machine")
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	over := kubelet
	if _, err := os.Stat(kubelet); err != nil {
		over = varLib
	}
	if err := syscall.Mount("tmpfs", over, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "mode=0755"); err != nil {
		return fmt.Errorf("mounting a tmpfs over %s: %w", over, err)
	}
	return errors.Join(os.MkdirAll(plugins, 0o750), os.MkdirAll(checkpoints, 0o750))
}

// Fresh empties the folders of all managers and names the one for checkpoints of CPU and memory manager; the device
// manager knows its own.
func Fresh() (string, error) {
	return checkpoints, errors.Join(empty(plugins), empty(checkpoints))
}

func empty(folder string) error {
	entries, err := os.ReadDir(folder)
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(folder, entry.Name())))
	}
	return err
}
