package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// Usage holds the resources that a process has used and holds.
type Usage struct {
	// CPU is user plus system time since its start.
	CPU time.Duration
	// RSS is resident memory, in bytes; Shared is the part of it that other
	// processes may share, above all the pages of the executable.
	RSS, Shared int64
	// OpenFiles counts its descriptors.
	OpenFiles int
}

// clockTick is USER_HZ, which Linux fixes at 100 for all architectures in
// what it shows to user space.
const clockTick = time.Second / 100

// ReadUsage reads /proc. A process that is gone gives the zero value.
func ReadUsage(pid int) Usage {
	var u Usage
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u
	}
	// The second field is the name in parentheses and may hold anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	number := func(i int) int64 { // numbered as in proc_pid_stat(5)
		if i-3 >= len(fields) {
			return 0
		}
		n, _ := strconv.ParseInt(string(fields[i-3]), 10, 64)
		return n
	}
	u.CPU = time.Duration(number(14)+number(15)) * clockTick
	u.RSS, u.Shared = readMemory(pid)
	if d, err := os.Open(fmt.Sprintf("/proc/%d/fd", pid)); err == nil {
		names, _ := d.Readdirnames(-1)
		u.OpenFiles = len(names)
		d.Close()
	}
	return u
}

func readMemory(pid int) (rss, shared int64) {
	var size int64
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, 0
	}
	if _, err := fmt.Sscan(string(statm), &size, &rss, &shared); err != nil {
		return 0, 0
	}
	page := int64(os.Getpagesize())
	return rss * page, shared * page
}
