package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// stalled is a reader that takes nothing until it is let go.
type stalled struct {
	let chan struct{}
	mu  sync.Mutex
	strings.Builder
}

func (s *stalled) Write(p []byte) (int, error) {
	<-s.let
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Builder.Write(p)
}

// A terminal that was paused holds up nothing; what it misses the log has, and says so.
func TestNobodyWaitsForAReader(t *testing.T) {
	reader := &stalled{let: make(chan struct{})}
	m := newMessages(reader)
	m.patience = time.Hour
	file := filepath.Join(t.TempDir(), "supervisor.log")
	if err := m.keep(file); err != nil {
		t.Fatal(err)
	}
	const said = 3 * maxUnread
	for i := range said {
		m.say(fmt.Sprintf("line %d", i))
	}
	close(reader.let)
	m.flush()
	m.say("the last line")
	m.close()
	m.say("nobody hears this")
	lines := strings.Split(strings.TrimSpace(reader.String()), "\n")
	read, note, last := len(lines)-2, lines[len(lines)-2], lines[len(lines)-1]
	if read < maxUnread || lines[read-1] != fmt.Sprintf("line %d", read-1) || last != "the last line" ||
		note != fmt.Sprintf("(%d lines are left out here; the supervisor's log has them)", said-read) {
		t.Errorf("read were %d lines, then %q and %q", read, note, last)
	}
	log, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(log), "\n"); n != said+1 {
		t.Errorf("the log has %d lines", n)
	}
}

// A plane's end does not wait for a reader that never comes back.
func TestAReaderThatNeverReads(t *testing.T) {
	reader := &stalled{let: make(chan struct{})}
	m := newMessages(reader)
	m.patience = time.Millisecond
	m.say("one")
	m.close()
	m.close()
	close(reader.let)
}
