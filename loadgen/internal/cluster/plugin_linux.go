package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/prometheus/procfs"
)

// endPlugin kills an exec plugin that client-go has started as a child of this process, and the plugin's descendants,
// because client-go cannot do that. Otherwise, the plugin would outlive this process and keep this process's output
// open. argv is the plugin's command line. If the plugin is a script, an interpreter may precede argv in the command
// line of the process.
func endPlugin(argv []string) error {
	processes, err := allProcesses()
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range processes {
		if p.parent == os.Getpid() && p.runs(argv) {
			for _, pid := range descendants(processes, p.pid) {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
					errs = append(errs, err)
				}
			}
		}
	}
	return errors.Join(errs...)
}

type process struct {
	pid, parent int
	argv        []string
}

// runs reports whether the command line of a process is argv, possibly after the name of an interpreter.
func (p process) runs(argv []string) bool {
	for _, own := range [][]string{p.argv, p.argv[min(1, len(p.argv)):]} {
		if len(own) == len(argv) && filepath.Base(own[0]) == filepath.Base(argv[0]) && slices.Equal(own[1:], argv[1:]) {
			return true
		}
	}
	return false
}

// descendants returns a process and all its descendants. Each process comes before its children.
func descendants(all []process, pid int) (pids []int) {
	pids = []int{pid}
	for i := 0; i < len(pids); i++ {
		for _, p := range all {
			if p.parent == pids[i] {
				pids = append(pids, p.pid)
			}
		}
	}
	return pids
}

// allProcesses reads all processes from /proc. It skips processes that end meanwhile.
func allProcesses() (all []process, err error) {
	found, err := procfs.AllProcs()
	if err != nil {
		return nil, err
	}
	for _, p := range found {
		stat, err := p.Stat()
		if err != nil {
			continue
		}
		argv, err := p.CmdLine()
		if err != nil {
			continue
		}
		all = append(all, process{p.PID, stat.PPID, argv})
	}
	return all, nil
}
