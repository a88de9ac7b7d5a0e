package process

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// AvailableMemory is the memory that new processes can have, in bytes: the
// kernel's own estimate, or less where a control group (a container, a systemd
// unit) limits this process. It is zero if the system does not tell.
func AvailableMemory() uint64 {
	available := field("/proc/meminfo", "MemAvailable:") << 10
	for dir := cgroup(); dir != ""; dir = filepath.Dir(dir) {
		limit, ok := number(filepath.Join(dir, "memory.max"))
		used, _ := number(filepath.Join(dir, "memory.current"))
		if ok { // the page cache in it can be given up
			used -= min(used, field(filepath.Join(dir, "memory.stat"), "inactive_file"))
			available = min(available, limit-min(limit, used))
		}
		if dir == cgroupRoot {
			break
		}
	}
	return available
}

// OOMKills returns the number of processes of the whole machine that the kernel has
// killed for want of memory since boot. It is zero where the system does not count.
func OOMKills() uint64 { return field("/proc/vmstat", "oom_kill") }

const cgroupRoot = "/sys/fs/cgroup"

// cgroup is this process's directory under version 2, or "".
func cgroup() string {
	data, err := os.ReadFile("/proc/self/cgroup")
	path, found := strings.CutPrefix(strings.TrimSpace(string(data)), "0::/")
	if err != nil || !found || strings.Contains(path, "\n") {
		return ""
	}
	return filepath.Join(cgroupRoot, path)
}

// number reads a file that holds one; "max" is none.
func number(path string) (n uint64, ok bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err = strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
	return n, err == nil
}

// field reads the number after a name at the beginning of a line; zero if there
// is none.
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
