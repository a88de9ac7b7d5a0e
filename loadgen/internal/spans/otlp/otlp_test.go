package otlp

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/stormglass/stormglass/loadgen/internal/spans"
)

// serve starts a Receiver on the loopback device, and stops it at the end of the test.
func serve(t testing.TB, o Options) (r *Receiver, addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r = New(o)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := r.Serve(l); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(func() {
		r.Stop(t.Context()) // t.Context has ended, so Stop does not wait for connections
		serving.Wait()
	})
	return r, l.Addr().String()
}

// dial returns a client connection to addr. A nil config means no TLS.
func dial(t testing.TB, addr string, config *tls.Config) *grpc.ClientConn {
	t.Helper()
	c := insecure.NewCredentials()
	if config != nil {
		c = credentials.NewTLS(config)
	}
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(c), grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(1<<30)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// message returns an export request with n spans that have valid IDs.
func message(n int, change func(i int, s *tracepb.Span)) *collectorpb.ExportTraceServiceRequest {
	all := make([]*tracepb.Span, n)
	for i := range all {
		all[i] = &tracepb.Span{
			TraceId: []byte{1, 15: byte(i), 14: byte(i >> 8), 13: byte(i >> 16)}, SpanId: []byte{1, 7: byte(i), 6: byte(i >> 8)},
			Name: "PATCH", StartTimeUnixNano: 1, EndTimeUnixNano: 2,
		}
		if change != nil {
			change(i, all[i])
		}
	}
	return &collectorpb.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{{Spans: all}}}}}
}

func attribute(key, value string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: value}}}
}

// taken collects spans.
type taken []spans.Span

func (t *taken) take(s spans.Span, _ time.Time) { *t = append(*t, s) }

func TestTokenIsRequired(t *testing.T) {
	var got taken
	r, addr := serve(t, Options{Token: "secret", Take: got.take})
	client := collectorpb.NewTraceServiceClient(dial(t, addr, nil))
	large := message(1, func(_ int, s *tracepb.Span) { s.Name = strings.Repeat("x", 3<<20) })
	for _, c := range []struct {
		token string
		want  codes.Code
	}{
		{"", codes.Unauthenticated}, {"Bearer wrong", codes.Unauthenticated}, {"secret", codes.Unauthenticated}, {"Bearer ", codes.Unauthenticated},
		{"Bearer secret", codes.OK},
	} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), ProcessKey, "etcd-0")
		if c.token != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, TokenKey, c.token)
		}
		if _, err := client.Export(ctx, large); status.Code(err) != c.want {
			t.Errorf("%q: %v, want %v", c.token, err, c.want)
		}
	}
	if want := (Counts{Exports: 1, Refused: 4}); r.Counts() != want {
		t.Errorf("counts %+v, want %+v", r.Counts(), want)
	}
	if len(got) != 1 || got[0].Process != "etcd-0" {
		t.Errorf("%d spans, want 1 of etcd-0", len(got))
	}
}

// A self-signed certificate for 127.0.0.1, for servers and clients.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestClientCertificateIsRequired(t *testing.T) {
	own, roots := certificate(t)
	known, clients := certificate(t)
	unknown, _ := certificate(t)
	var got taken
	r, addr := serve(t, Options{TLS: &tls.Config{Certificates: []tls.Certificate{own}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert}, Take: got.take})
	for name, c := range map[string]struct {
		config *tls.Config
		want   codes.Code
	}{
		"known certificate":   {&tls.Config{RootCAs: roots, Certificates: []tls.Certificate{known}}, codes.OK},
		"unknown certificate": {&tls.Config{RootCAs: roots, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &unknown, nil }}, codes.Unavailable},
		"no certificate":      {&tls.Config{RootCAs: roots}, codes.Unavailable},
		"no TLS":              {nil, codes.Unavailable},
	} {
		if _, err := collectorpb.NewTraceServiceClient(dial(t, addr, c.config)).Export(t.Context(), message(1, nil)); status.Code(err) != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if len(got) != 1 || r.Counts().Exports != 1 {
		t.Errorf("%d spans, counts %+v; want 1 export of 1 span", len(got), r.Counts())
	}
}

const method = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

// raw is a codec that sends bytes unchanged.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error)      { return v.([]byte), nil }
func (raw) Unmarshal(data []byte, v any) error { return proto.Unmarshal(data, v.(proto.Message)) }
func (raw) Name() string                       { return "proto" }

// The Receiver refuses and counts requests above a limit, and requests that it cannot decode.
func TestExportsAreLimited(t *testing.T) {
	var got taken
	r, addr := serve(t, Options{Take: got.take})
	conn := dial(t, addr, nil)
	client := collectorpb.NewTraceServiceClient(conn)
	huge := message(1, func(_ int, s *tracepb.Span) {
		s.Attributes = []*commonpb.KeyValue{attribute("a", strings.Repeat("x", 10<<20))}
	})
	for name, c := range map[string]struct {
		send func() error
		want codes.Code
	}{
		"10 MiB attribute": {func() error { _, err := client.Export(t.Context(), huge); return err }, codes.ResourceExhausted},
		"gzip bomb":        {func() error { _, err := client.Export(t.Context(), huge, grpc.UseCompressor(gzip.Name)); return err }, codes.ResourceExhausted},
		"many empty spans": {func() error {
			_, err := client.Export(t.Context(), &collectorpb.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{{Spans: slices.Repeat([]*tracepb.Span{{}}, maxElements)}}}}})
			return err
		}, codes.Internal},
		"many empty attributes": {func() error {
			_, err := client.Export(t.Context(), message(1, func(_ int, s *tracepb.Span) { s.Attributes = slices.Repeat([]*commonpb.KeyValue{{}}, maxElements) }))
			return err
		}, codes.Internal},
		"deep lists": {func() error {
			value := &commonpb.AnyValue{}
			for range deepest {
				value = &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{Values: []*commonpb.AnyValue{value}}}}
			}
			_, err := client.Export(t.Context(), message(1, func(_ int, s *tracepb.Span) { s.Attributes = []*commonpb.KeyValue{{Value: value}} }))
			return err
		}, codes.Internal},
		"not protobuf": {func() error {
			return conn.Invoke(t.Context(), method, []byte{0xff, 0xff}, &collectorpb.ExportTraceServiceResponse{}, grpc.ForceCodec(raw{}))
		}, codes.Internal},
	} {
		before := r.Counts().Refused
		if err := c.send(); status.Code(err) != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		await(t, name+" to be counted", func() bool { return r.Counts().Refused == before+1 })
	}
	large := message(1, func(_ int, s *tracepb.Span) {
		s.Attributes = []*commonpb.KeyValue{attribute("a", strings.Repeat("x", 3<<20))}
	})
	if _, err := client.Export(t.Context(), large, grpc.UseCompressor(gzip.Name)); err != nil {
		t.Errorf("3 MiB attribute: %v", err)
	}
	if want := (Counts{Exports: 1, Refused: 6}); r.Counts() != want || len(got) != 1 {
		t.Errorf("%d spans, counts %+v, want %+v", len(got), r.Counts(), want)
	}
}

// await waits until `met` returns true. It fails the test if the test's deadline is near.
func await(t *testing.T, what string, met func() bool) {
	t.Helper()
	for !met() {
		select {
		case <-t.Context().Done():
			t.Fatalf("waited for %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

func TestInvalidIDsAreCounted(t *testing.T) {
	var got taken
	r, addr := serve(t, Options{Take: got.take})
	_, err := collectorpb.NewTraceServiceClient(dial(t, addr, nil)).Export(t.Context(), message(7, func(i int, s *tracepb.Span) {
		switch i {
		case 0:
			s.TraceId = nil
		case 1:
			s.TraceId = make([]byte, 16)
		case 2:
			s.TraceId = s.TraceId[:15]
		case 3:
			s.SpanId = make([]byte, 8)
		case 4:
			s.SpanId = append(s.SpanId, 1)
		case 5:
			s.ParentSpanId = []byte{1, 2, 3}
		}
	}))
	if err != nil || len(got) != 2 || got[0].Parent != (spans.ID{}) || r.Counts().Invalid != 5 {
		t.Errorf("%v, %d spans, counts %+v; want 2 spans, and 5 invalid", err, len(got), r.Counts())
	}
}

// In a flood of spans from several senders, the Keeper counts all spans, and its memory stays within its limit.
func TestFlood(t *testing.T) {
	const senders, messages, each = 4, 100, 500
	tracer := spans.NewTracer(spans.Limits{Bytes: 1 << 20}, 1, 1)
	r, addr := serve(t, Options{Token: "secret", Take: tracer.Received})
	var sending sync.WaitGroup
	for n := range senders {
		client := collectorpb.NewTraceServiceClient(dial(t, addr, nil))
		ctx := metadata.AppendToOutgoingContext(t.Context(), TokenKey, "Bearer secret")
		sending.Go(func() {
			for m := range messages {
				request := message(each, func(_ int, s *tracepb.Span) {
					s.TraceId[1], s.TraceId[2] = byte(n), byte(m)
					s.Attributes = []*commonpb.KeyValue{attribute("http.target", strings.Repeat("x", 200))}
				})
				if _, err := client.Export(ctx, request); err != nil {
					t.Errorf("sender %d: %v", n, err)
					return
				}
			}
		})
	}
	sending.Wait()
	all, counts := tracer.Kept()
	if len(all) != 0 || counts.Spans != senders*messages*each || r.Counts().Exports != senders*messages {
		t.Errorf("kept %d traces; counts %+v and %+v", len(all), counts, r.Counts())
	}
	if held := counts.Spans - counts.Full - counts.Unmatched; held*400 > 1<<20 { // a span takes more than 400 bytes
		t.Errorf("%d spans are in memory", held)
	}
}

// BenchmarkReceive receives spans as kube-apiserver sends them. An operation is one span. cpu-ns/op is the CPU time of the
// process, including the client, which sends messages that are already encoded.
func BenchmarkReceive(b *testing.B) {
	const each = 512
	_, addr := serve(b, Options{Token: "secret", Take: spans.NewTracer(spans.Limits{}, 1, 1).Received})
	data, err := proto.Marshal(message(each, func(_ int, s *tracepb.Span) {
		for _, key := range []string{"audit-id", "http.request.method", "url.path", "user_agent.original", "server.address", "network.protocol.version", "http.route"} {
			s.Attributes = append(s.Attributes, attribute(key, "0c3d9a41-5f0e-4b9c-9d0e-0a3f5a1a2b3c"))
		}
		s.Events = []*tracepb.Span_Event{{Name: "About to write a response", TimeUnixNano: 1}, {Name: "Writing http response done", TimeUnixNano: 2}}
	}))
	if err != nil {
		b.Fatal(err)
	}
	conn := dial(b, addr, nil)
	ctx := metadata.AppendToOutgoingContext(b.Context(), TokenKey, "Bearer secret")
	b.ReportAllocs()
	before := cpu()
	b.ResetTimer()
	for n := 0; n < b.N; n += each {
		if err := conn.Invoke(ctx, method, data, &collectorpb.ExportTraceServiceResponse{}, grpc.ForceCodec(raw{})); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((cpu()-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// cpu returns the CPU time of the process.
func cpu() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
