package run

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/version"
	"github.com/stormglass/stormglass/loadgen/internal/load/kind"
	"github.com/stormglass/stormglass/loadgen/internal/node"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/workers"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Version returns the program's version.
func Version() string { return version.Program() }

// OtherGenerator says how the machine or the loadgen version of earlier measurements differs from the current one. It
// returns "" if nothing is known to differ.
func OtherGenerator(host result.Host, version string) string {
	differs := func(was, is string) bool { return was != "" && was != is }
	here := hostFacts()
	switch {
	case differs(host.OS, here.OS), differs(host.CPUModel, here.CPUModel), host.CPUs > 0 && host.CPUs != here.CPUs:
		return strings.TrimSpace(fmt.Sprintf("on another machine with %d processors (%s)", host.CPUs, host.CPUModel))
	case differs(version, Version()):
		return fmt.Sprintf("with loadgen %s, but this is loadgen %s", version, Version())
	}
	return ""
}

func hostFacts() result.Host {
	h := result.Host{OS: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU()}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		h.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	h.CPUModel = procField("/proc/cpuinfo", "model name")
	kib, _ := strconv.ParseInt(strings.TrimSuffix(procField("/proc/meminfo", "MemTotal"), " kB"), 10, 64)
	h.MemoryBytes = kib << 10
	var lim syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim) == nil {
		h.Descriptors = lim.Cur
	}
	return h
}

// procField returns the value of the first "name : value" line of a proc file, or "" if the file or the line is
// missing, for example because the system has no /proc.
func procField(file, name string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		key, value, ok := strings.Cut(lines.Text(), ":")
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// baseDescriptors and watchesPerConn are for an estimate of the file descriptors that the generator needs: one for each
// connection of a node, one per watchesPerConn watches (the API server's limit of streams on a connection), and
// baseDescriptors for the archive, the control plane's pipes and a margin.
const (
	baseDescriptors = 256
	watchesPerConn  = 100
)

func descriptorsNeeded(s *plan.Plan, divided bool) uint64 {
	need := baseDescriptors
	if s.Nodes.Fidelity != node.Shared && !(divided && workers.WholeNodes(s) == "") {
		need += s.Nodes.Count
		if s.Nodes.KubeProxy {
			need += s.Nodes.Count
		}
	}
	for _, l := range s.Loads {
		if divided && kind.Divides(l.Kind) {
			continue
		}
		perConn := watchesPerConn
		if l.Connect == "each" {
			perConn = 1
		}
		need += l.Clients + l.Watchers // each client of a "history" load has a connection
		need += (l.Count+perConn-1)/perConn + max(l.Connections, (l.MaxInFlight+watchesPerConn-1)/watchesPerConn)
	}
	return uint64(need)
}

// CheckDescriptors raises the soft limit of file descriptors to the hard limit, and returns an error if that is too low
// for the scenario. The Go runtime usually raises the soft limit at start, but not always if another program started
// the process. If divided is true, connections of loads and nodes that run in workers do not count.
func CheckDescriptors(s *plan.Plan, divided bool) error {
	var lim syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim); err != nil {
		return exitcode.Environmentf("read the descriptor limit: %w", err)
	}
	if lim.Cur < lim.Max {
		lim.Cur = lim.Max
		// The system refuses this if its own maximum is below the hard limit. The check below then reports that limit.
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &lim)
		if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim); err != nil {
			return exitcode.Environmentf("read the descriptor limit: %w", err)
		}
	}
	if need := descriptorsNeeded(s, divided); lim.Cur < need {
		return exitcode.Environmentf("scenario %s needs about %d file descriptors, but the limit is %d (raise it with `ulimit -n %d`, or lower nodes.count)",
			s.Name, need, lim.Cur, need)
	}
	return nil
}
