package history

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/load/history/check"
	"github.com/stormglass/stormglass/loadgen/result"
)

// recorder records operations. Their times count from `base`, on the monotonic clock. It is safe for concurrent use.
type recorder struct {
	base    time.Time
	value   atomic.Uint64 // the value that the newest write used; each write increments it
	skipped atomic.Int64

	mu         sync.Mutex
	operations []check.Operation
	begun      int
	counts     [3]result.HistoryOperations // numbers of operations, by kind
	full       bool                        // whether an operation was rejected because the history was full
	newest     uint64                      // newest version that was written or read
}

func (r *recorder) now() time.Duration { return time.Since(r.base) }

// begin reserves space for n operations. It returns false if the history is full.
func (r *recorder) begin(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun+n > MaxOperations {
		r.full = true
		return false
	}
	r.begun += n
	return true
}

func (r *recorder) end(o check.Operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.operations = append(r.operations, o)
	r.newest = max(r.newest, o.Version)
	n := &r.counts[o.Kind]
	n.Invoked++
	switch o.Outcome {
	case check.OK:
		n.Succeeded++
	case check.Conflict:
		n.Conflicts++
	case check.Unknown:
		n.Unknown++
	default:
		n.Refused++
	}
}

// ended returns the number of operations that have ended, and how many of them succeeded.
func (r *recorder) ended() (all, well int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.counts {
		all, well = all+n.Invoked, well+n.Succeeded
	}
	return all, well
}

// writeEvidence writes the history and the pictures to the directory c.Dir. The history is JSON with times in
// nanoseconds. It returns the names of the files.
func writeEvidence(c Config, h *check.History, pictures []check.Picture) ([]string, error) {
	var names []string
	write := func(name string, content []byte) error {
		if err := os.WriteFile(filepath.Join(c.Dir, name), content, 0o600); err != nil {
			return fmt.Errorf("load %s: write the evidence: %w", c.Name, err)
		}
		names = append(names, name)
		return nil
	}
	b, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", c.Name, err)
	}
	if err := write("history-"+c.Name+".json", b); err != nil {
		return names, err
	}
	for _, p := range pictures {
		if err := write("history-"+p.Register+".html", p.HTML); err != nil {
			return names, err
		}
	}
	return names, nil
}
