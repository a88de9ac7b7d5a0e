// Package web serves a page about a run in progress. The page shows the report so far and the state of the run, and has
// buttons to control the run.
//
// The page is for browsers on this machine only. The server listens on a loopback address. To prevent DNS rebinding, it
// refuses requests for other host names. All paths begin with a random token. The server refuses commands from pages of
// other origins.
package web

import (
	"crypto/rand"
	"crypto/subtle"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/loopback"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/run"
)

// Server serves the page of one run. It is safe for concurrent use.
type Server struct {
	listener net.Listener
	token    string
	http     *http.Server
	served   chan struct{} // closed when the HTTP server has stopped
	control  *run.Control
	pages    pages

	mu       sync.Mutex
	snapshot run.Snapshot
	steps    []string      // latest messages about steps of the run
	changed  chan struct{} // closed and replaced at each change of the state
	streams  int           // number of browsers that receive the state
	final    []byte        // the report; nil while the run is in progress
	fetched  chan struct{} // receives a value for each fetch of the report
}

// Check returns an error unless addr is HOST:PORT with a loopback address.
func Check(addr string) error {
	if err := loopback.Check(addr, true); err != nil {
		return exitcode.Usagef("--web: %w", err)
	}
	if host, _, _ := net.SplitHostPort(addr); !loopback.Is(host) { // loopback.Check has validated addr
		return exitcode.Usagef("--web: %s is open to the network, and any client that reaches the page can pause the run (listen on 127.0.0.1; from elsewhere: ssh -L)", addr)
	}
	return nil
}

// Open listens at addr, which must pass Check. Port 0 selects a free port.
func Open(addr string) (*Server, error) {
	if err := Check(addr); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, exitcode.Environmentf("--web: %w (use port 0 for a free port)", err)
	}
	return &Server{
		listener: listener, token: rand.Text(), served: make(chan struct{}), changed: make(chan struct{}), fetched: make(chan struct{}, maxStreams),
	}, nil
}

// URL returns the URL of the page, including the token.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + "/" + s.token + "/" }

// Start starts serving the page of a run. The page uses control to control the run. Start returns the Progress for this
// run, which updates the page and passes all calls on to next.
func (s *Server) Start(control *run.Control, next run.Progress) run.Progress {
	s.control = control
	s.http = &http.Server{
		Handler: s.guard(s.handler()), ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	go func() {
		defer close(s.served)
		_ = s.http.Serve(s.listener) // until Close
	}()
	return &display{next, s}
}

// Close stops the server and ends all responses. For a nil *Server it does nothing.
func (s *Server) Close() error {
	if s == nil {
		return nil
	}
	if s.http == nil {
		return s.listener.Close()
	}
	err := s.http.Close()
	<-s.served
	return err
}

// display is a run.Progress that also stores the progress for the page.
type display struct {
	run.Progress
	server *Server
}

// maxSteps is the number of progress messages that the server keeps for the page.
const maxSteps = 5

func (d *display) Step(line string) {
	d.Progress.Step(line)
	line = terminal.CleanLines(line)
	d.server.change(func(s *Server) {
		s.steps = append(s.steps[max(0, len(s.steps)-maxSteps+1):len(s.steps):len(s.steps)], line)
	})
}

func (d *display) Live(n run.Snapshot) {
	d.Progress.Live(n)
	d.server.change(func(s *Server) { s.snapshot = n })
}

// change calls f, which changes the state, and notifies the connected browsers.
func (s *Server) change(f func(*Server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
	close(s.changed)
	s.changed = make(chan struct{})
}

// guard passes a request on to h if its host name is a loopback name and its path has the token. It refuses commands
// from pages of another origin.
func (s *Server) guard(h http.Handler) http.Handler {
	origins := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		switch {
		case !loopback.IsHost(r.Host):
			http.Error(w, "this server answers only requests from this machine: use the address 127.0.0.1", http.StatusForbidden)
			return
		case subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1:
			http.Error(w, "wrong token: use the whole address that loadgen printed", http.StatusNotFound)
			return
		case origins.Check(r) != nil:
			http.Error(w, "this command came from a web page of another origin, which is not allowed", http.StatusForbidden)
			return
		}
		header := w.Header()
		header.Set("Cache-Control", "no-store")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		h.ServeHTTP(w, r)
	})
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{token}/{$}", s.serveRoot)
	mux.HandleFunc("GET /{token}/page", s.servePage)
	mux.HandleFunc("GET /{token}/events", s.serveEvents)
	for path, command := range map[string]func(*http.Request) error{
		"pause":     func(*http.Request) error { return s.control.Pause() },
		"resume":    func(*http.Request) error { return s.control.Resume() },
		"end-phase": func(r *http.Request) error { return s.control.EndPhase(r.URL.Query().Get("phase")) },
	} {
		mux.HandleFunc("POST /{token}/"+path, func(w http.ResponseWriter, r *http.Request) {
			if err := command(r); err != nil {
				http.Error(w, err.Error(), http.StatusConflict)
				return
			}
			w.WriteHeader(http.StatusNoContent)
		})
	}
	return mux
}

// serveRoot serves the final report or, while there is no report, the page of the run.
func (s *Server) serveRoot(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	final := s.final
	s.mu.Unlock()
	if final == nil {
		s.servePage(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(final))) // makes the response complete before this function returns
	if _, err := w.Write(final); err == nil {
		_ = http.NewResponseController(w).Flush() // before the run's process ends
		select {
		case s.fetched <- struct{}{}:
		default: // Finish waits for only a few fetches
		}
	}
}
