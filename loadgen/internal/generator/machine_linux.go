package generator

import (
	"os"

	"github.com/prometheus/procfs"
)

const ticksPerSecond = 100 // USER_HZ, the same on all machines that Go runs on

func readMachine() (m machine) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return m
	}
	stat, err := fs.Stat()
	if err != nil {
		return m
	}
	cpu := stat.CPUTotal
	m.busy = cpu.User + cpu.Nice + cpu.System + cpu.IRQ + cpu.SoftIRQ // guests are in User and Nice
	m.steal, m.processors = cpu.Steal, len(stat.CPU)
	if m.own, err = treeSeconds(fs, os.Getpid()); err != nil {
		return m
	}
	m.cpuWait, m.ioWait = stalled(fs, "cpu"), stalled(fs, "io")
	m.ok = true
	return m
}

// treeSeconds is the processor time of a process and of all that it started, those that have ended too.
func treeSeconds(fs procfs.FS, root int) (seconds float64, err error) {
	all, err := fs.AllProcs()
	if err != nil {
		return 0, err
	}
	children, ticks := map[int][]int{}, map[int]float64{}
	for _, p := range all {
		s, err := p.Stat()
		if err != nil {
			continue // it has ended since
		}
		children[s.PPID] = append(children[s.PPID], s.PID)
		ticks[s.PID] = float64(s.UTime) + float64(s.STime) + float64(s.CUTime) + float64(s.CSTime)
	}
	for next := []int{root}; len(next) > 0; {
		pid := next[0]
		seconds += ticks[pid] / ticksPerSecond
		next = append(next[1:], children[pid]...)
	}
	return seconds, nil
}

// stalled is for how long some process has waited for a resource; nil: the kernel does not say.
func stalled(fs procfs.FS, resource string) *float64 {
	s, err := fs.PSIStatsForResource(resource)
	if err != nil || s.Some == nil {
		return nil
	}
	return new(float64(s.Some.Total) / 1e6)
}
