package generator

import (
	"os"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// peakRSS returns the largest resident set size so far, in bytes. It reads VmHWM, because a process inherits the
// maximum in getrusage from its parent.
func peakRSS() int64 {
	p, err := procfs.Self()
	if err != nil {
		return 0
	}
	s, err := p.NewStatus()
	if err != nil {
		return 0
	}
	return int64(s.VmHWM)
}

func openDescriptors() int {
	p, err := procfs.Self()
	if err != nil {
		return 0
	}
	n, err := p.FileDescriptorsLen()
	if err != nil {
		return 0
	}
	return n
}

// memoryLimit returns the memory limit of the cgroup, or the memory of the machine if that is lower.
func memoryLimit() int64 {
	var limit int64
	if fs, err := procfs.NewDefaultFS(); err == nil {
		if m, err := fs.Meminfo(); err == nil && m.MemTotalBytes != nil {
			limit = int64(*m.MemTotalBytes)
		}
	}
	if data, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64); err == nil && (limit == 0 || n < limit) {
			limit = n
		}
	}
	return limit
}
