package terminal

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// stuckAfter is the time after which a write counts as stuck.
const stuckAfter = time.Second

// Unstuck returns a writer to w that does not wait for a stopped reader, such as a paused pager. It gives up a write
// that takes longer than a second, and drops further text until that write has ended. If w is a terminal, Unstuck
// returns w.
func Unstuck(w io.Writer) io.Writer {
	if IsTerminal(w) {
		return w
	}
	return &unstuck{w: w, after: stuckAfter}
}

type unstuck struct {
	w     io.Writer
	after time.Duration

	mu    sync.Mutex
	stuck <-chan error // closed when the stuck write ends; nil if no write is stuck
}

func (u *unstuck) Write(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.stuck != nil {
		select {
		case <-u.stuck:
			u.stuck = nil
		default:
			return len(p), nil
		}
	}
	written, text := make(chan error, 1), bytes.Clone(p)
	go func() {
		_, err := u.w.Write(text)
		written <- err
		close(written)
	}()
	late := time.NewTimer(u.after)
	defer late.Stop()
	select {
	case err := <-written:
		return len(p), err
	case <-late.C:
		u.stuck = written
		return len(p), nil
	}
}
