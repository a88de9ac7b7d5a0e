// Package fsync delays the fsync and fdatasync calls of a process, without root privileges and without changes to the
// code that makes these calls. It simulates a slow disk, such as a throttled cloud volume or a disk with a busy
// neighbour.
//
// The child process, whose fsync calls can be delayed, calls StartAgent at the beginning of its main. Its supervisor
// calls NewAgent, which connects to the child by a socket, and then Set, Clear and Stats. There is no cost before the first Set. The
// first Set installs a seccomp filter on all threads of the child. The filter passes each fsync and fdatasync to a
// goroutine of the child, which delays the call and then makes the kernel continue it. The data is therefore as durable
// as without the delay.
//
// The delay comes before the call and adds to the time that the disk takes.
//
// Limits:
//   - It needs Linux 5.7 or later on amd64 or arm64. The kernel allows only one seccomp filter with a listener, and some
//     container sandboxes already install one. Available checks these requirements.
//   - A filter cannot be removed. After Clear, each call still makes a round trip to the agent, about ten microseconds,
//     until the child ends.
//   - Only fsync and fdatasync are slow. Writes, and syncs by other means (msync, O_DSYNC, io_uring), are not slow.
//     etcd does not use these other means.
//   - The agent runs in the child. While the child is stopped (SIGSTOP), Set and Clear wait, and so do the delayed
//     calls of the child. Only a fatal signal interrupts a delayed call, so waitpid(WUNTRACED) does not report such
//     a child as stopped, although all its other threads are stopped.
package fsync

import (
	"errors"
	"path/filepath"
	"strings"
	"time"
)

// AgentEnv is the environment variable that holds the descriptor number of the child's end of the socket.
const AgentEnv = "STORMGLASS_FSYNC_AGENT_FD"

// Delay configures the delay of fsync calls. control.Fault has checked its bounds.
type Delay struct {
	// Delay is the time that each call waits, in addition to the disk's own time.
	Delay time.Duration `json:"delay"`
	// Jitter is the maximum random change of Delay, up or down, with a uniform distribution. It is at most Delay.
	Jitter time.Duration `json:"jitter,omitempty"`
	// Files selects the files whose calls are delayed: etcd's write-ahead log (control.FaultFilesWAL, or empty), or all
	// files (control.FaultFilesAll).
	Files string `json:"files,omitempty"`
	// Seed is the seed of the jitter. The same seed gives the same sequence.
	Seed int64 `json:"seed,omitempty"`
}

// Stats counts the calls that an agent has handled since its process started.
type Stats struct {
	// Seen counts the calls that reached the agent, and Delayed the delayed calls among them. Waiting is the number
	// of calls that are being delayed now.
	Seen    int64 `json:"seen"`
	Delayed int64 `json:"delayed"`
	Waiting int64 `json:"waiting"`
}

// ErrUnavailable means that fsync calls cannot be delayed here. The errors of Available wrap it.
var ErrUnavailable = errors.New("slow fsync is not available here")

// isWAL reports whether a file is part of etcd's WAL: files that end in ".wal", and all files in a directory "wal"
// (where the next segment has a name such as "0.tmp"). path is the target of the file's link in /proc/self/fd.
func isWAL(path string) bool {
	path = strings.TrimSuffix(path, " (deleted)")
	return filepath.Ext(path) == ".wal" || filepath.Base(filepath.Dir(path)) == "wal"
}
