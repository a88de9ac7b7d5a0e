package watch

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// fastServer is a fast watch server. It works on frames, sends each event to all streams of a connection in one write, and
// encodes nothing.
type fastServer struct {
	net.Listener
	ca []byte

	mu    sync.Mutex
	conns []*fastServerConn
	begun int
}

type fastServerConn struct {
	mu      sync.Mutex
	nc      net.Conn
	streams []uint32
	b       []byte
}

const fastServerStreams = 100

func newFastServer(tb testing.TB) *fastServer {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.EnableHTTP2 = true
	s.StartTLS() // for its certificate
	config := s.TLS.Clone()
	config.NextProtos = []string{"h2"}
	s.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	must(tb, err)
	f := &fastServer{Listener: l, ca: pemOf(config.Certificates[0].Certificate[0])}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { f.serve(nc) })
		}
	})
	tb.Cleanup(func() {
		l.Close()
		f.mu.Lock()
		for _, c := range f.conns {
			c.nc.Close()
		}
		f.mu.Unlock()
		serving.Wait()
	})
	return f
}

func (f *fastServer) serve(nc net.Conn) {
	defer nc.Close()
	c := &fastServerConn{nc: nc}
	f.mu.Lock()
	f.conns = append(f.conns, c)
	f.mu.Unlock()
	if _, err := io.CopyN(io.Discard, nc, int64(len(http2.ClientPreface))); err != nil {
		return
	}
	framer := http2.NewFramer(nc, nc)
	framer.ReadMetaHeaders = hpack.NewDecoder(0, nil)
	if err := framer.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: fastServerStreams}); err != nil {
		return
	}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}
		h, ok := frame.(*http2.MetaHeadersFrame)
		if !ok {
			continue
		}
		id := h.StreamID
		c.mu.Lock()
		c.b = append(c.b[:0], 0, 0, 1, byte(http2.FrameHeaders), byte(http2.FlagHeadersEndHeaders))
		c.b = append(binary.BigEndian.AppendUint32(c.b, id), 0x88)
		if strings.Contains(h.PseudoValue("path"), "watch=true") {
			c.streams = append(c.streams, id)
			f.mu.Lock()
			f.begun++
			f.mu.Unlock()
		} else {
			c.data(id, []byte(`{"metadata":{"resourceVersion":"100"}}`))
			c.b[len(c.b)-len(`{"metadata":{"resourceVersion":"100"}}`)-5] = byte(http2.FlagDataEndStream)
		}
		_, err = nc.Write(c.b)
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// data appends a DATA frame.
func (c *fastServerConn) data(id uint32, p []byte) {
	c.b = append(c.b, byte(len(p)>>16), byte(len(p)>>8), byte(len(p)), byte(http2.FrameData), 0)
	c.b = append(binary.BigEndian.AppendUint32(c.b, id), p...)
}

// pour sends an event to all watches.
func (f *fastServer) pour(tb testing.TB, event []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		c.mu.Lock()
		c.b = c.b[:0]
		for _, id := range c.streams {
			c.data(id, event)
		}
		if len(c.b) > 0 {
			if _, err := c.nc.Write(c.b); err != nil {
				tb.Error(err)
			}
		}
		c.mu.Unlock()
	}
}

func (f *fastServer) target() load.Target {
	return load.Target{
		Config: &rest.Config{Host: "https://" + f.Addr().String(), TLSClientConfig: rest.TLSClientConfig{CAData: f.ca, ServerName: "example.com"}},
		Seed:   1,
	}
}

// openWatches opens watches on a fastServer. It returns them and a function that ends them.
func openWatches(tb testing.TB, f *fastServer, count int) (w *Watches, stop func()) {
	tb.Helper()
	w, err := New(f.target(), newLoad("watches", func(l *scenario.Load) { l.Count = count }), pacer(tb, 1e5), someObjects{1})
	must(tb, err)
	must(tb, w.Prepare(tb.Context()))
	w.BeginPhase("storm", time.Now())
	return w, start(tb, w)
}

// cpu returns the CPU time of this process, including the server.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkEvent delivers one measured event of 1.5 KB to each of 1,000
// watches, through TLS and the kernel. The CPU time includes the server, which
// does little more than encrypt.
func BenchmarkEvent(b *testing.B) {
	const watches = 1000
	f := newFastServer(b)
	w, stop := openWatches(b, f, watches)
	defer stop()
	<-w.AllOpen()
	account, err := w.newLedger("bench", 1<<10)
	must(b, err)
	stats := w.phases.Now().deliveries
	payload := strings.Repeat("0123456789abcdef", 64)
	var before, after runtime.MemStats
	seq := int64(0)
	look := time.NewTicker(50 * time.Microsecond)
	defer look.Stop()
	pour := func() {
		rv := uint64(101 + seq)
		account.begin(seq, stats)
		account.ack(seq, rv, w.now(), 0)
		event := strings.NewReplacer(`} \" ] \\`, payload, "1234", strconv.FormatUint(rv, 10), "run:17", string(account.stamp(nil, seq))).Replace(configMapEvent)
		f.pour(b, []byte(event))
		seq++
		for w.totals().events < seq*watches {
			<-look.C
		}
	}
	for range 5 {
		pour()
	}
	runtime.ReadMemStats(&before)
	began := cpu()
	for b.Loop() {
		pour()
	}
	spent := cpu() - began
	runtime.ReadMemStats(&after)
	events := float64(b.N) * watches
	b.ReportMetric(float64(spent.Nanoseconds())/events, "cpu-ns/event")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/events, "allocs/event")
	b.ReportMetric(0, "ns/op")
	if expected, delivered := account.count(nil, nil); expected != delivered {
		b.Errorf("%d of %d delivered", delivered, expected)
	}
}

// BenchmarkWatch opens 5,000 watches and reports the memory that this process
// holds for them, and the CPU.
func BenchmarkWatch(b *testing.B) {
	const watches = 5000
	for b.Loop() {
		f := newFastServer(b)
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := cpu()
		w, stop := openWatches(b, f, watches)
		<-w.AllOpen()
		spent := cpu() - began
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapInuse+after.StackInuse-before.HeapInuse-before.StackInuse)/watches, "B/watch")
		b.ReportMetric(float64(spent.Nanoseconds())/watches, "cpu-ns/watch")
		stop()
	}
	b.ReportMetric(0, "ns/op")
}
