package process

import (
	"bufio"
	"fmt"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// AvailableMemory returns the memory that new processes can use, in bytes. It is the kernel's estimate, or less if a
// control group (a container, a systemd unit) limits this process.
func AvailableMemory() uint64 {
	available := field("/proc/meminfo", "MemAvailable:") << 10
	for dir := cgroup(); dir != ""; dir = filepath.Dir(dir) {
		limit, ok := number(filepath.Join(dir, "memory.max"))
		used, _ := number(filepath.Join(dir, "memory.current"))
		if ok { // the kernel can reclaim the inactive page cache
			used -= min(used, field(filepath.Join(dir, "memory.stat"), "inactive_file"))
			available = min(available, limit-min(limit, used))
		}
		if dir == cgroupRoot {
			break
		}
	}
	return available
}

// OOMKills returns the number of processes on this machine that the kernel has killed for lack of memory since boot. It
// returns zero if the system does not count them.
func OOMKills() uint64 { return field("/proc/vmstat", "oom_kill") }

const cgroupRoot = "/sys/fs/cgroup"

// cgroup returns this process's directory in cgroup v2, or "" if the machine does not use cgroup v2.
func cgroup() string {
	data, err := os.ReadFile("/proc/self/cgroup")
	path, found := strings.CutPrefix(strings.TrimSpace(string(data)), "0::/")
	if err != nil || !found || strings.Contains(path, "\n") {
		return ""
	}
	return filepath.Join(cgroupRoot, path)
}

// number reads a file that contains an integer. ok is false for "max", which means unlimited, and if the file is missing.
func number(path string) (n uint64, ok bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err = strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
	return n, err == nil
}

// field returns the number after a field's name in a file such as /proc/meminfo. It returns zero if no line begins with
// the name.
func field(path, name string) uint64 {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) > 1 && words[0] == name {
			n, _ := strconv.ParseUint(words[1], 10, 64)
			return n
		}
	}
	return 0
}

// Usage holds the resource usage of a process.
type Usage struct {
	// CPU is the user time plus the system time since the process started.
	CPU time.Duration
	// RSS is the resident memory in bytes. Shared is the part of RSS that other processes may share, mainly the pages
	// of the executable.
	RSS, Shared int64
	// OpenFiles is the number of the process's open descriptors.
	OpenFiles int
}

// ReadUsage reads the usage of a process from /proc. It returns the zero value if the process has ended.
func ReadUsage(pid int) (u Usage) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return u
	}
	stat, err := p.Stat()
	if err != nil {
		return u
	}
	u.CPU = time.Duration(stat.CPUTime() * float64(time.Second))
	if m, err := p.Statm(); err == nil {
		u.RSS, u.Shared = int64(m.ResidentBytes()), int64(m.SHRBytes())
	}
	u.OpenFiles, _ = p.FileDescriptorsLen()
	return u
}

// Paused reports whether a process is stopped by a signal such as SIGSTOP.
func Paused(pid int) bool {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return false
	}
	stat, err := p.Stat()
	return err == nil && stat.State == "T"
}

// TotalMemory returns the machine's memory, in bytes.
func TotalMemory() uint64 { return field("/proc/meminfo", "MemTotal:") << 10 }

// Reserve keeps the kernel from assigning a loopback port to another socket, for example to an outgoing connection,
// while the component that listens on the port is not running. The component can still bind to the port explicitly:
// both sockets have SO_REUSEADDR (Go's listeners set it), and the reserving socket does not listen.
func Reserve(port int) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("reserve port %d: %w", port, err)
	}
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: netip.MustParseAddr("127.0.0.1").As4()})
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("reserve port %d: %w", port, err)
	}
	return os.NewFile(uintptr(fd), fmt.Sprintf("port %d", port)), nil
}

// descriptorCeiling returns the largest number, which means no ceiling: Linux allows any soft limit up to the hard
// limit.
func descriptorCeiling() uint64 { return math.MaxUint64 }

// endWithParent asks the kernel to kill the child when the thread of this process that started the child ends.
func endWithParent(attr *syscall.SysProcAttr) {
	attr.Pdeathsig = syscall.SIGKILL
}
