// Package service holds the programs that components call while they work: a KMS plugin, an OIDC issuer, webhooks for
// tokens, authorization, audit events and conversion, an extender of the scheduler, and the API of the simulated cloud
// that cloud-controller-manager calls. Each program is a separate process that uses credentials of its plane. A
// Behaviour can make a running service slow, make it fail or make it throttle requests.
package service

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/stormglass/stormglass/controlplane/control"
)

// HealthPath, metricsPath and BehaviourPath are the paths that every service serves in addition to its own paths. An
// administrator changes the service's Behaviour at BehaviourPath.
const (
	HealthPath    = "/healthz"
	metricsPath   = "/metrics"
	BehaviourPath = "/behaviour"
)

const host = "127.0.0.1"

// program registers the paths of a service. If the returned function is not nil, it runs in parallel with the HTTP
// server.
type program func(*server) (besides func(context.Context) error, err error)

func programs() map[string]program {
	return map[string]program{
		control.KindKMSPlugin:            servePlugin,
		control.KindOIDCIssuer:           serveIssuer,
		control.KindTokenWebhook:         serveTokens,
		control.KindAuthorizationWebhook: serveAuthorization,
		control.KindAuditWebhook:         serveAudit,
		control.KindConversionWebhook:    serveConversion,
		control.KindSchedulerExtender:    serveExtender,
		control.KindCloudAPI:             serveCloud,
	}
}

// flags holds the values of the flags of all services. Each service needs only some of them.
type flags struct {
	port                int
	cert, key, clientCA string
	socket              string
	encryptionKey       string
	keyCount            string
	signingKeys         string
	token               string
	own                 Behaviour
	cloud               cloudFlags
}

func (f *flags) parse(kind string, args []string, complaints io.Writer) error {
	set := pflag.NewFlagSet(kind, pflag.ContinueOnError)
	set.SetOutput(complaints)
	set.IntVar(&f.port, "secure-port", 0, "the port on 127.0.0.1 to listen on")
	set.StringVar(&f.cert, "tls-cert-file", "", "its certificate")
	set.StringVar(&f.key, "tls-private-key-file", "", "the key of its certificate")
	set.StringVar(&f.clientCA, "client-ca-file", "", "the certificate authority of its clients' certificates")
	set.StringVar(&f.socket, "socket", "", "the Unix socket of the KMS plugin")
	set.StringVar(&f.encryptionKey, "encryption-key-file", "", "the file with the 32 bytes from which the KMS plugin derives its keys")
	set.StringVar(&f.keyCount, "key-count-file", "", "the file with the number of keys so far; each rotation adds 1")
	set.StringVar(&f.signingKeys, "signing-key-dir", "", "the directory of the OIDC issuer's signing keys")
	set.StringVar(&f.token, "token-file", "", "the file with the load's token, which the token webhook accepts")
	set.DurationVar(&f.own.Delay, "delay", 0, "the time that each answer takes")
	set.DurationVar(&f.own.Jitter, "jitter", 0, "the maximum time that is randomly added to or subtracted from the delay")
	set.Float64Var(&f.own.Throttle, "throttle", 0, "the number of requests per second that are answered; 0 means unlimited")
	set.StringVar(&f.cloud.state, "state-file", "", "the file in which the cloud stores its objects")
	set.IntVar(&f.cloud.balancers, "max-load-balancers", 0, "the cloud's quota of load balancers; 0 means unlimited")
	set.IntVar(&f.cloud.routes, "max-routes", 0, "the cloud's quota of routes; 0 means unlimited")
	set.DurationVar(&f.cloud.balancerTime, "load-balancer-time", 0, "the time that a load balancer takes to get its address")
	return set.Parse(args)
}

// Main runs the service of the given kind until SIGTERM or SIGINT, and returns the exit code. ok is false if the kind
// is unknown.
func Main(kind string, args []string, stderr io.Writer) (code int, ok bool) {
	program, ok := programs()[kind]
	if !ok {
		return 0, false
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, kind, program, args, stderr); err != nil {
		fmt.Fprintf(stderr, "error: %s: %v\n", kind, err)
		return 1, true
	}
	return 0, true
}

func run(ctx context.Context, kind string, program program, args []string, stderr io.Writer) error {
	var f flags
	if err := f.parse(kind, args, stderr); err != nil {
		return err
	}
	s := newServer(kind, f)
	besides, err := program(s)
	if err != nil {
		return err
	}
	tlsConfig, err := f.tls()
	if err != nil {
		return err
	}
	listener, err := tls.Listen("tcp", s.address(), tlsConfig)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	web := &http.Server{
		Handler: s.mux, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: log.New(io.Discard, "", 0), // aborted handshakes are not worth logging
	}
	group.Go(func() error {
		if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	if besides != nil {
		group.Go(func() error { return besides(ctx) })
	}
	group.Go(func() error {
		<-ctx.Done()
		return web.Close()
	})
	fmt.Fprintf(stderr, "%s serves on %s\n", kind, s.address())
	return group.Wait()
}

// tls returns a configuration that requests a certificate from each client. It also accepts clients without a
// certificate, for the operations that any client may call.
func (f flags) tls() (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, err
	}
	pem, err := os.ReadFile(f.clientCA)
	if err != nil {
		return nil, err
	}
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: no certificate", f.clientCA)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: clients,
	}, nil
}

// server holds the flags, handlers and metrics that each service needs.
type server struct {
	flags   flags
	mux     *http.ServeMux
	conduct *conduct
	seconds *prometheus.HistogramVec
}

func newServer(kind string, f flags) *server {
	s := &server{flags: f, mux: http.NewServeMux(), conduct: newConduct(f.own)}
	s.seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "stormglass_service_request_duration_seconds", Help: "Time that a service took to answer, by operation and result.",
		ConstLabels: prometheus.Labels{"service": kind}, Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
	}, []string{"operation", "result"})
	registry := prometheus.NewRegistry()
	registry.MustRegister(s.seconds, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	s.mux.HandleFunc("GET "+HealthPath, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	s.mux.Handle("GET "+metricsPath, identified(promhttp.HandlerFor(registry, promhttp.HandlerOpts{})))
	s.mux.Handle("PUT "+BehaviourPath, administrators(http.HandlerFunc(s.conduct.serve)))
	return s
}

func (s *server) address() string { return net.JoinHostPort(host, strconv.Itoa(s.flags.port)) }

// The results of an operation, as values of the label `result` in the metrics.
const (
	resultAnswered  = "answered"
	resultFailed    = "failed"
	resultThrottled = "throttled"
)

var errFails = errors.New("stormglass: injected service failure")

// do runs an operation with the service's Behaviour, and records the duration and the result in the metrics.
func (s *server) do(ctx context.Context, operation string, answer func() error) error {
	begun, result := time.Now(), resultAnswered
	err := s.conduct.admit()
	if err == nil {
		err = s.conduct.wait(ctx)
	}
	if err == nil {
		err = answer()
	}
	switch {
	case errors.As(err, new(*throttledError)):
		result = resultThrottled
	case err != nil:
		result = resultFailed
	}
	s.seconds.WithLabelValues(operation, result).Observe(time.Since(begun).Seconds())
	return err
}

// answers registers an HTTP handler for an operation. Only clients with a certificate of the plane may call it.
func (s *server) answers(pattern, operation string, answer http.HandlerFunc) {
	s.mux.Handle(pattern, identified(s.open(operation, answer)))
}

// open returns a handler for an operation that clients without a certificate may call too.
func (s *server) open(operation string, answer http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refuse(w, s.do(r.Context(), operation, func() error { answer(w, r); return nil }))
	})
}

// writeJSON responds with v as JSON.
func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // an error means that the client is gone
}

// refuse responds with an error. It does nothing if err is nil.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	var throttled *throttledError
	var refused *refusal
	switch {
	case err == nil:
		return
	case errors.As(err, &throttled):
		status = http.StatusTooManyRequests
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(throttled.after.Seconds()))))
	case errors.As(err, &refused):
		status = refused.status
	}
	http.Error(w, err.Error(), status)
}

// identified returns a handler that serves only clients with a certificate of the plane.
func identified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.VerifiedChains) == 0 {
			http.Error(w, "no client certificate", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// administrators returns a handler that serves only clients of the group system:masters.
func administrators(next http.Handler) http.Handler {
	return identified(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(r.TLS.PeerCertificates[0].Subject.Organization, "system:masters") {
			http.Error(w, "for administrators only", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	}))
}
