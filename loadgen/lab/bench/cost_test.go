package bench

import (
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

type cost struct {
	cpu    time.Duration
	allocs uint64
}

func costNow() (cost, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return cost{}, err
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return cost{time.Duration(u.Utime.Nano() + u.Stime.Nano()), m.Mallocs}, nil
}

func costOf(work func() error) (cost, error) {
	from, err := costNow()
	if err != nil {
		return cost{}, err
	}
	if err := work(); err != nil {
		return cost{}, err
	}
	to, err := costNow()
	return cost{to.cpu - from.cpu, to.allocs - from.allocs}, err
}

// per returns the cost per unit. n is the number of units, and unit is their name.
func (c cost) per(n int64, unit string) []figure {
	return []figure{
		{"cpu-µs/" + unit, float64(c.cpu.Nanoseconds()) / 1e3 / float64(n)},
		{"allocs/" + unit, float64(c.allocs) / float64(n)},
	}
}

// memory is the memory in use after a garbage collection, in bytes: the Go heap and stacks, and the resident set after
// free pages were returned to the system.
type memory struct{ live, rss float64 }

func memoryNow() (memory, error) {
	debug.FreeOSMemory() // collects first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	p, err := procfs.Self()
	if err != nil {
		return memory{}, err
	}
	s, err := p.Stat()
	if err != nil {
		return memory{}, err
	}
	return memory{float64(m.HeapAlloc + m.StackInuse), float64(s.ResidentMemory())}, nil
}

// descriptorsNow returns the number of open files and sockets.
func descriptorsNow() (float64, error) {
	p, err := procfs.Self()
	if err != nil {
		return 0, err
	}
	n, err := p.FileDescriptorsLen()
	return float64(n), err
}

// per returns the growth per unit since the reading `before`. n is the number of units, and unit is their name.
func (m memory) per(before memory, n int, unit string) []figure {
	return []figure{
		{"live-KB/" + unit, (m.live - before.live) / 1e3 / float64(n)},
		{"rss-KB/" + unit, (m.rss - before.rss) / 1e3 / float64(n)},
	}
}
