// Package otlp receives spans by the OpenTelemetry protocol over gRPC (OTLP/gRPC).
package otlp

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/encoding/gzip" // exporters may compress
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"

	"github.com/stormglass/stormglass/loadgen/internal/spans"
)

// Limits on the resources that senders can use.
const (
	longestMessage = 4 << 20          // maximum size of an uncompressed export request in bytes; gRPC's default
	maxConnections = 64               // maximum number of open connections; further ones wait
	maxAtOnce      = 8                // maximum number of concurrent export requests of one connection
	maxExporting   = 2                // maximum number of export requests that are read or converted at the same time
	longestExport  = 10 * time.Second // maximum time from the header of an export request to its end
	longestIdle    = 30 * time.Second // time after which a connection without requests is closed
	window         = 64 << 10         // maximum number of unread bytes of a stream; gRPC cannot raise this limit
)

// Metadata of export requests, which components read from the variable OTEL_EXPORTER_OTLP_HEADERS.
const (
	// TokenKey holds "Bearer TOKEN".
	TokenKey = "authorization"
	// ProcessKey holds the name of the process, such as kube-apiserver-0.
	ProcessKey = "stormglass-process"
)

// Options configure a Receiver.
type Options struct {
	// Token is the bearer token that senders must present. An empty token accepts all senders.
	Token string
	// TLS is the TLS configuration of the server. Nil means that connections are not encrypted.
	TLS *tls.Config
	// Take takes each received span. Several goroutines call it, but one at a time.
	Take func(spans.Span, time.Time)
}

// Counts holds the numbers of requests and spans that a Receiver accepted and refused.
type Counts struct {
	// Exports is the number of accepted export requests. Refused is the number of export requests that lacked the token,
	// exceeded a limit or could not be decoded. Invalid is the number of spans without a valid ID.
	Exports int64 `json:"exports"`
	Refused int64 `json:"refused"`
	Invalid int64 `json:"invalid"`
}

// Receiver is an OTLP/gRPC server.
type Receiver struct {
	collectorpb.UnimplementedTraceServiceServer
	options Options
	server  *grpc.Server
	mu      sync.Mutex // held during Options.Take

	exports, refused, invalid atomic.Int64
}

// New returns a Receiver. It receives nothing until Serve is called.
func New(o Options) *Receiver {
	r := &Receiver{options: o}
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(longestMessage), grpc.MaxConcurrentStreams(maxAtOnce), grpc.MaxHeaderListSize(16 << 10),
		grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(maxAtOnce * window),
		grpc.ConnectionTimeout(longestExport), grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: longestIdle}),
		grpc.ForceServerCodecV2(newCodec()), grpc.InTapHandle(r.admit), grpc.StatsHandler(&turns{receiver: r, slots: make(chan struct{}, maxExporting)}),
	}
	if o.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(o.TLS)))
	}
	r.server = grpc.NewServer(options...)
	collectorpb.RegisterTraceServiceServer(r.server, r)
	return r
}

// Serve accepts connections until Stop is called. It closes l.
func (r *Receiver) Serve(l net.Listener) error {
	return r.server.Serve(netutil.LimitListener(l, maxConnections))
}

// Stop refuses new connections, waits until the pending exports or ctx have ended, and closes all connections.
func (r *Receiver) Stop(ctx context.Context) {
	defer context.AfterFunc(ctx, r.server.Stop)()
	r.server.GracefulStop()
}

// Counts returns what the Receiver accepted and refused so far.
func (r *Receiver) Counts() Counts {
	return Counts{r.exports.Load(), r.refused.Load(), r.invalid.Load()}
}

// Export implements the OTLP trace service.
func (r *Receiver) Export(ctx context.Context, request *collectorpb.ExportTraceServiceRequest) (*collectorpb.ExportTraceServiceResponse, error) {
	process := ""
	if all := metadata.ValueFromIncomingContext(ctx, ProcessKey); len(all) > 0 {
		process = all[0]
	}
	all, invalid := spans.FromProto(request.GetResourceSpans(), process)
	r.exports.Add(1)
	r.invalid.Add(int64(invalid))
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range all {
		r.options.Take(s, now)
	}
	return &collectorpb.ExportTraceServiceResponse{}, nil
}
