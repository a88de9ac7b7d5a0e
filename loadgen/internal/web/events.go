package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/result"
)

const (
	// maxStreams is the maximum number of browsers that receive the state of the run. The server refuses further
	// browsers.
	maxStreams = 32
	// tellWithin is the time limit to send the state to a browser. The server disconnects a browser that does not read
	// in time.
	tellWithin = 5 * time.Second
	// fetchWithin is the maximum time that a run waits at its end for browsers to fetch the report.
	fetchWithin = 15 * time.Second
)

// state is the state of the run, as the server sends it to the script of the page.
type state struct {
	Word    string   `json:"word"`
	Line    string   `json:"line"`
	Phase   string   `json:"phase"` // the phase in progress; empty between phases and after a failure
	Paused  bool     `json:"paused"`
	Steps   []string `json:"steps"`
	Version int      `json:"version"` // version of the page that the browser can fetch
	Final   bool     `json:"final"`   // whether the browser can fetch the report
}

func stateOf(n run.Snapshot, steps []string) state {
	s := state{Word: word(n), Line: terminal.Clean(n.String()), Phase: phaseOf(n), Paused: n.Paused > 0, Steps: steps}
	if s.Steps == nil {
		s.Steps = []string{}
	}
	return s
}

func word(n run.Snapshot) string {
	switch {
	case n.Failure != "":
		return "FAILED"
	case n.Paused > 0:
		return "PAUSED"
	case n.Phase == run.Ending, len(n.Phases) > 0 && n.Phases[len(n.Phases)-1].Took > 0:
		return "ENDING"
	}
	return "RUNNING"
}

// phaseOf returns the phase in progress, or "" between phases and after a failure.
func phaseOf(n run.Snapshot) string {
	for _, p := range n.Phases {
		if p.Now {
			return p.Name
		}
	}
	return ""
}

// serveEvents sends the state of the run to a browser, at each change, as server-sent events.
func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request) {
	if !s.join() {
		http.Error(w, fmt.Sprintf("the maximum of %d browsers is already connected", maxStreams), http.StatusServiceUnavailable)
		return
	}
	defer s.leave()
	w.Header().Set("Content-Type", "text/event-stream")
	to := http.NewResponseController(w)
	for {
		s.mu.Lock()
		changed, now := s.changed, stateOf(s.snapshot, s.steps)
		now.Final = s.final != nil
		s.mu.Unlock()
		now.Version = s.pages.next()
		text, err := json.Marshal(now)
		if err != nil {
			return
		}
		_ = to.SetWriteDeadline(time.Now().Add(tellWithin)) // if this fails, the write has no time limit
		if _, err := fmt.Fprintf(w, "data: %s\n\n", text); err != nil || to.Flush() != nil || now.Final {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

func (s *Server) join() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams == maxStreams {
		return false
	}
	s.streams++
	return true
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams--
}

// Finish offers the report of the run in dir to the connected browsers, and waits until they have fetched it, for at
// most fetchWithin or until hurry is closed. It then closes the server.
func (s *Server) Finish(dir string, hurry <-chan struct{}) error {
	if s == nil {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(dir, result.HTMLFile))
	if err == nil {
		waiting := 0
		s.change(func(s *Server) { s.final, waiting = text, s.streams })
		deadline := time.NewTimer(fetchWithin)
		defer deadline.Stop()
		for late := false; waiting > 0 && !late; waiting-- {
			select {
			case <-s.fetched:
			case <-deadline.C:
				late = true
			case <-hurry:
				late = true
			}
		}
	}
	return s.Close()
}
