package generator

import (
	"encoding/binary"
	"fmt"
	"os"
	"unsafe"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// event is an event that perf_event_open(2) can count, given by its type and config.
type event struct {
	kind   uint32
	config uint64
}

var instructions = event{unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_INSTRUCTIONS}

// counter counts the events of one thread and of the threads that it starts.
type counter struct{ file *os.File }

// open opens a counter for each thread of a process. A counter includes the threads that its thread starts. If the
// kernel provides no counters, open returns nil.
func open(pid int, what event) (all []*counter) {
	threads, err := procfs.AllThreads(pid)
	if err != nil {
		return nil
	}
	attributes := unix.PerfEventAttr{
		Type: what.kind, Config: what.config, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Bits: unix.PerfBitInherit | unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv,
	}
	for _, t := range threads {
		fd, err := unix.PerfEventOpen(&attributes, t.PID, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if err == unix.ESRCH { // the thread has ended
			continue
		}
		if err != nil {
			for _, c := range all {
				_ = c.close()
			}
			return nil
		}
		all = append(all, &counter{os.NewFile(uintptr(fd), "perf")})
	}
	return all
}

func (c *counter) read() (uint64, error) {
	var n [8]byte
	if _, err := c.file.Read(n[:]); err != nil {
		return 0, fmt.Errorf("read a counter: %w", err)
	}
	return binary.NativeEndian.Uint64(n[:]), nil
}

func (c *counter) close() error { return c.file.Close() }
