// Package observe serves the samples of an active recorder or of recorded runs through the query API of Prometheus
// (https://prometheus.io/docs/prometheus/latest/querying/api/). It also evaluates rules over these samples. Grafana's
// Prometheus data source, promtool and every other client of that API work with it unmodified.
//
// The engine, the storage and the rules manager are Prometheus' packages; only the handlers are new. Prometheus'
// handlers (web/api/v1) also implement remote write and OTLP. They would add 30 modules, including most of an
// OpenTelemetry collector, and 14 MB to a program of 62 MB (docs/design.md).
//
// The API is read-only. The server writes the results of rules to a separate store: observing a run does not change its
// archive.
//
// The server is for clients on this machine. Unless Public is set, it listens only on loopback addresses and refuses
// requests for other host names. This prevents DNS rebinding, an attack in which a website reaches a local server under
// the website's name. Like Prometheus, it has no password, but it may require a token in the path (Config.Token).
package observe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"

	"github.com/stormglass/stormglass/internal/loopback"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
)

const (
	// Limits of queries. They are about a tenth of Prometheus' defaults, because queries share the process with the
	// recorder.
	maxSamples   = 5_000_000
	queryTimeout = 30 * time.Second
	maxQueries   = 4
	// lastAnswers is the time limit for queries in progress when the server closes.
	lastAnswers = 2 * time.Second
)

// Recorder is the part of scrape.Recorder that a Server uses.
type Recorder interface {
	Live() scrape.Storage
	Targets() []scrape.TargetState
	Types() map[string]model.MetricType
	Interval() time.Duration
}

// Config configures a Server.
type Config struct {
	// Public reports whether the server accepts requests for any host name. Clients on other machines need it.
	Public bool
	// Token is the first part of the path of all requests. The server refuses other paths. Empty means that requests need
	// no token.
	Token string
	// Pages handles requests outside the API. Nil means a page that describes the API.
	Pages http.Handler
	// Recorder is the recorder to observe. Close the Server before you close the Recorder.
	Recorder Recorder
	// Samples are the samples to serve. Close the Server before you close their storage. Nil means the samples of
	// Recorder.
	Samples storage.Queryable
	// Metrics are the metrics of this process, served at /metrics. Nil means none.
	Metrics prometheus.Gatherer
	// Rules are rule files (*.yaml) to evaluate. Nil means none.
	Rules fs.FS
	// Retention is the minimum time for which the server keeps results of rules. Zero means forever.
	Retention time.Duration
	// Version is the version of Stormglass that the endpoint status/buildinfo returns.
	Version string
	// Now returns the current time, the default evaluation time of queries. Nil means time.Now. Rules always use the
	// wall clock.
	Now func() time.Time
}

// Server serves the query API from Start to Close.
type Server struct {
	c        Config
	began    time.Time
	listener net.Listener
	http     *http.Server
	served   chan struct{}
	answers  sync.WaitGroup    // responses in progress
	samples  storage.Queryable // Config.Samples and the results of rules
	engine   *promql.Engine
	rules    *evaluator
}

// Listen listens at addr, HOST:PORT; port 0 selects a free port. Unless public is set, addr must be a loopback address.
func Listen(addr string, public bool) (net.Listener, error) {
	if err := loopback.Check(addr, public); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w (use port 0 for a free port)", addr, cause(err))
	}
	return listener, nil
}

// Start starts to serve requests on listener and to evaluate rules. Server.Close closes the listener.
func Start(listener net.Listener, c Config) (*Server, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Samples == nil {
		c.Samples = c.Recorder.Live()
	}
	s := &Server{c: c, began: time.Now(), listener: listener, served: make(chan struct{})}
	var err error
	if s.rules, err = newEvaluator(c, s.URL()); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	s.samples = s.rules.samples
	s.engine = archive.NewEngine(maxSamples, queryTimeout, make(slots, maxQueries))
	s.http = &http.Server{Handler: s.counted(s.handler()), ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	go func() {
		defer close(s.served)
		_ = s.http.Serve(listener) // until Close
	}()
	return s, nil
}

// counted returns a handler that counts responses in progress, for which Close waits.
func (s *Server) counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.answers.Add(1)
		defer s.answers.Done()
		h.ServeHTTP(w, r)
	})
}

// URL returns the URL of the API, http://HOST:PORT or http://HOST:PORT/TOKEN, for clients on this machine.
func (s *Server) URL() string {
	at := s.listener.Addr().String()
	if tcp, ok := s.listener.Addr().(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		at = fmt.Sprintf("127.0.0.1:%d", tcp.Port)
	}
	if s.c.Token != "" {
		at += "/" + s.c.Token
	}
	return "http://" + at
}

// Close ends all queries and the evaluation of rules, and deletes the results of rules. After that, the caller may
// close the recorder's storage.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), lastAnswers)
	defer cancel()
	if s.http.Shutdown(ctx) != nil { // a request is still in progress
		_ = s.http.Close()
	}
	<-s.served
	s.answers.Wait() // http.Server.Close does not wait; the contexts of the requests have ended
	return s.rules.close()
}

// slots limits the number of concurrent queries; further queries wait.
type slots chan struct{}

func (s slots) GetMaxConcurrent() int { return cap(s) }
func (s slots) Delete(int)            { <-s }
func (s slots) Close() error          { return nil }

func (s slots) Insert(ctx context.Context, _ string) (int, error) {
	select {
	case s <- struct{}{}:
		return 0, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// cause returns the system call's error in err, or err. It omits the address, because the caller's message contains it.
func cause(err error) error {
	if syscall, ok := errors.AsType[*os.SyscallError](err); ok {
		return syscall.Err
	}
	return err
}
