package generator

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

const ticksPerSecond = 100 // USER_HZ, the unit of times in /proc; the same on all Linux architectures that Go supports

func readMachine() (m usage) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return m
	}
	stat, err := fs.Stat()
	if err != nil {
		return m
	}
	cpu := stat.CPUTotal
	m.busy = cpu.User + cpu.Nice + cpu.System + cpu.IRQ + cpu.SoftIRQ // User and Nice include guests
	m.steal, m.processors = cpu.Steal, len(stat.CPU)
	if m.own, err = ownSeconds(); err != nil {
		return m
	}
	m.generator = cpuSeconds()
	m.cpuWait, m.memoryWait, m.ioWait = stalled(fs, "cpu"), stalled(fs, "memory"), stalled(fs, "io")
	m.ok = true
	return m
}

// ownSeconds returns the result of treeSeconds for this process. If this process has no children, it does not read
// other processes.
func ownSeconds() (float64, error) {
	if err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); errors.Is(err, unix.ECHILD) {
		if _, ticks, ok := processTicks(filepath.Join(procfs.DefaultMountPoint, "self", "stat")); ok {
			return ticks / ticksPerSecond, nil
		}
	}
	return treeSeconds(procfs.DefaultMountPoint, os.Getpid())
}

// treeSeconds returns the processor time of a process and its descendants, including processes that have ended. It
// reads only the necessary values of each process, because every scrape calls it.
func treeSeconds(proc string, root int) (seconds float64, err error) {
	dir, err := os.Open(proc)
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return 0, err
	}
	children, ticks := map[int][]int{}, map[int]float64{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		parent, used, ok := processTicks(filepath.Join(proc, name, "stat"))
		if !ok {
			continue // the process has ended
		}
		children[parent] = append(children[parent], pid)
		ticks[pid] = used
	}
	for next := []int{root}; len(next) > 0; {
		pid := next[0]
		seconds += ticks[pid] / ticksPerSecond
		next = append(next[1:], children[pid]...)
	}
	return seconds, nil
}

// processTicks reads the parent and the processor time of a process. The time includes the time of its ended children
// (proc(5)).
func processTicks(file string) (parent int, ticks float64, ok bool) {
	fields := statFields(file)
	const ppid, utime, cstime = 1, 11, 14
	if len(fields) <= cstime {
		return 0, 0, false
	}
	parent, err := strconv.Atoi(fields[ppid])
	if err != nil {
		return 0, 0, false
	}
	for _, f := range fields[utime : cstime+1] {
		n, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return 0, 0, false
		}
		ticks += n
	}
	return parent, ticks, true
}

// stalled returns the total time, in seconds, in which at least one process waited for a resource ("cpu", "memory" or
// "io"). It returns nil if the kernel does not report it.
func stalled(fs procfs.FS, resource string) *float64 {
	s, err := fs.PSIStatsForResource(resource)
	if err != nil || s.Some == nil {
		return nil
	}
	return new(float64(s.Some.Total) / 1e6)
}
