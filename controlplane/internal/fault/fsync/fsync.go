// Package fsync makes fsync and fdatasync of a process slow, without root and
// without touching its code: the failure is a disk that takes its time, as a
// throttled cloud volume or a neighbour's burst makes it.
//
// It has two sides. The child that is to be slow calls StartAgent, first thing in its main. Its
// supervisor holds the other end (NewAgent) and calls Set, Clear and Stats. There is no cost
// before the first Set. That call puts a seccomp filter on all threads of the child, which hands
// fsync and fdatasync to a goroutine of the same process. The goroutine lets each call wait and
// then tells the kernel to continue it, so the data is as durable as ever.
//
// The wait comes before the call and adds to the disk's own time.
//
// Limits:
//   - Linux 5.7 or later on amd64 or arm64, and no other filter that notifies
//     in force, as in some container sandboxes: the kernel allows one.
//     Available tells.
//   - A filter cannot be taken off again. After Clear each call still makes a
//     round trip to the agent, some ten microseconds, until the child ends.
//   - Only these two calls are slow. Writes, and syncs by other means (msync,
//     O_DSYNC, io_uring), are not. etcd uses none of them.
//   - The agent runs in the child: while the child is stopped (SIGSTOP) Set and
//     Clear wait, and so do its calls. Only a fatal signal interrupts a call
//     that waits, so waitpid(WUNTRACED) does not report such a child as
//     stopped, though all its other threads are.
package fsync

import (
	"errors"
	"path/filepath"
	"strings"
	"time"
)

// AgentEnv names the environment variable that tells a child the descriptor number of its end of
// the agent.
const AgentEnv = "STORMGLASS_FSYNC_AGENT_FD"

// The values of Delay.Files.
const (
	// WAL is etcd's write-ahead log: files that end in ".wal", and all that
	// lies in a directory "wal" (the next segment is there as "0.tmp").
	WAL = "wal"
	// All is every file of the process.
	All = "all"
)

// Delay configures the delay of fsync calls. control.Fault has checked its bounds.
type Delay struct {
	// Delay that each call waits for, in addition to the disk's own time.
	Delay time.Duration `json:"delay"`
	// Jitter is the most that is added to or taken from Delay, drawn evenly. At most Delay.
	Jitter time.Duration `json:"jitter,omitempty"`
	// Files whose calls are delayed, WAL or All. Empty means WAL.
	Files string `json:"files,omitempty"`
	// Seed of the jitter: one seed draws one sequence.
	Seed int64 `json:"seed,omitempty"`
}

// Stats counts what an agent has done since its process began.
type Stats struct {
	// Seen counts the calls that came to the agent, Delayed the calls among them that had to wait;
	// Waiting counts the calls that wait now.
	Seen    int64 `json:"seen"`
	Delayed int64 `json:"delayed"`
	Waiting int64 `json:"waiting"`
}

// ErrUnavailable is wrapped by the errors of Available.
var ErrUnavailable = errors.New("slow fsync is not to be had here")

// isWAL reports whether the file at path, as /proc/self/fd names it, is of etcd's write-ahead log.
func isWAL(path string) bool {
	path = strings.TrimSuffix(path, " (deleted)")
	return filepath.Ext(path) == ".wal" || filepath.Base(filepath.Dir(path)) == "wal"
}
