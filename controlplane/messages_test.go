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

// stalled is a writer that blocks until the test releases it.
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

// A paused terminal delays no message. The log contains the lines that the terminal misses, and a message states their
// number.
func TestStalledReaderDelaysNoMessage(t *testing.T) {
	reader := &stalled{let: make(chan struct{})}
	m := newMessages(reader)
	m.patience = time.Hour
	file := filepath.Join(t.TempDir(), "supervisor.log")
	if err := m.openLog(file); err != nil {
		t.Fatal(err)
	}
	const said = 3 * maxUnread
	for i := range said {
		m.write(fmt.Sprintf("line %d", i))
	}
	close(reader.let)
	m.flush()
	m.write("the last line")
	m.close()
	m.write("after the reader left")
	lines := strings.Split(strings.TrimSpace(reader.String()), "\n")
	read, leftOut := 0, 0
	for _, line := range lines {
		n := 0
		if _, err := fmt.Sscanf(line, "(%d lines omitted; they are in the supervisor's log)", &n); err == nil {
			leftOut += n
			continue
		}
		read++
	}
	if last := lines[len(lines)-1]; last != "the last line" || read < maxUnread || leftOut == 0 || read+leftOut != said+1 {
		t.Errorf("got %d lines, %d reported as left out, of %d; the last is %q", read, leftOut, said+1, last)
	}
	log, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(log), "\n"); n != said+1 {
		t.Errorf("the log has %d lines, want all messages", n)
	}
}

// The end of a plane does not wait for a writer that blocks forever.
func TestFlushGivesUpOnStalledReader(t *testing.T) {
	reader := &stalled{let: make(chan struct{})}
	m := newMessages(reader)
	m.patience = time.Millisecond
	m.write("one")
	m.close()
	m.close()
	close(reader.let)
}

// A message that quotes hostile text keeps its lines, but loses escape sequences, on the terminal and in the log.
func TestMessagesAreClean(t *testing.T) {
	reader := &stalled{let: make(chan struct{})}
	close(reader.let)
	m := newMessages(reader)
	m.patience = time.Hour
	file := filepath.Join(t.TempDir(), "supervisor.log")
	if err := m.openLog(file); err != nil {
		t.Fatal(err)
	}
	m.write("from its log:\n  E1 \x1b[2J\u202egone")
	m.close()
	log, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{"terminal": reader.String(), "log": string(log)} {
		if !strings.HasSuffix(text, "from its log:\n  E1 [2Jgone\n") {
			t.Errorf("%s contains %q, want text without escape sequences", what, text)
		}
	}
}
