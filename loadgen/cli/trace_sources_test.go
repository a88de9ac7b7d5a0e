package cli

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/planetest"
	"github.com/stormglass/stormglass/loadgen/internal/spans"
	"github.com/stormglass/stormglass/loadgen/internal/spans/otlp"
)

const created = `
apiVersion: stormglass/v1alpha1
kind: Scenario
name: created
record: {interval: 1s}
background:
  - {name: create, kind: requests, verb: create, resource: configmaps, rate: 10/s}
phases:
  - {name: only, for: 3s}
`

// TestSpansOfAUsersCluster runs against a plane that was not started for the run. The plane's spans reach the first run
// through a file, as if a collector had written it, and the second run through its receiver. The plane does not trust the
// load's ServiceAccount, so it begins a new trace for each request.
func TestSpansOfAUsersCluster(t *testing.T) {
	t.Parallel()
	runTurns.take(t)
	scenario, token := filepath.Join(t.TempDir(), "created.yaml"), filepath.Join(t.TempDir(), "token")
	collected, err := os.Create(filepath.Join(t.TempDir(), "spans.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer collected.Close()
	for file, text := range map[string]string{scenario: created, token: "secret\n", collected.Name(): "{\"resourceSpans\": [half a line of an earlier run"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := collected.Seek(0, io.SeekEnd); err != nil {
		t.Fatal(err)
	}
	collector := loopbackListener(t)
	go serveSpans(t, collector, otlp.Options{Token: "secret", Take: func(s spans.Span, _ time.Time) {
		if err := spans.WriteOTLP(collected, []spans.Span{s}); err != nil {
			t.Error(err)
		}
	}})
	relay := startRelay(t, collector.Addr().String())
	kubeconfig := planetest.Start(t, plane.Binary, &control.Config{Tracing: control.SpanExport{Endpoint: relay.Addr().String(), Token: "secret", SamplingRatePerMillion: 1_000_000}}).Cluster().Kubeconfigs["admin"]

	dir := filepath.Join(planetest.Dir(t), "run")
	p := startLoadgen(t, "run", scenario, "--out", dir, "--kubeconfig", kubeconfig, "--yes", "--trace=100%", "--trace-file", collected.Name())
	p.wait()
	if index := wantTraces(t, dir); index.Exports != 0 {
		t.Errorf("without a receiver: %d export requests", index.Exports)
	}

	dir = filepath.Join(planetest.Dir(t), "run")
	p = startLoadgen(t, "run", scenario, "--out", dir, "--kubeconfig", kubeconfig, "--yes", "--trace=100%", "--trace-listen", "127.0.0.1:0", "--trace-token-file", token)
	p.awaitLine("receiving spans at ")
	_, addr, _ := strings.Cut(p.said[len(p.said)-1], "receiving spans at ")
	relay.redirect(addr)
	p.wait()
	if index := wantTraces(t, dir); index.Exports == 0 || index.Refused != 0 {
		t.Errorf("%d export requests, %d refused", index.Exports, index.Refused)
	}
}

// wantTraces checks that each kept trace of a load is complete, with spans of loadgen, an API server and etcd.
func wantTraces(t *testing.T, dir string) spans.Index {
	t.Helper()
	index, all, err := spans.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(x spans.Trace) bool { return x.Client != "" }) // requests of the plane's components
	if len(all) == 0 || index.Requests == 0 {
		t.Errorf("%d traces of %d requests", len(all), index.Requests)
	}
	for i := range all {
		processes := map[string]bool{}
		for _, n := range all[i].Tree().All() {
			processes[n.Process] = true
		}
		if !all[i].Tree().Complete() || len(processes) != 3 {
			t.Errorf("trace %s: %d spans of %v, complete %t", all[i].Trace, len(all[i].Spans), processes, all[i].Tree().Complete())
		}
	}
	return index
}

func loopbackListener(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func serveSpans(t *testing.T, l net.Listener, o otlp.Options) {
	r := otlp.New(o)
	context.AfterFunc(t.Context(), func() { r.Stop(t.Context()) })
	_ = r.Serve(l)
}

// relay forwards connections to an address that a test can change. A control plane cannot change the address to which it
// sends spans.
type relay struct {
	net.Listener
	mu   sync.Mutex
	to   string
	open []net.Conn
}

func startRelay(t *testing.T, to string) *relay {
	r := &relay{Listener: loopbackListener(t), to: to}
	t.Cleanup(func() { r.redirect("") })
	go func() {
		for {
			from, err := r.Accept()
			if err != nil {
				return
			}
			r.forward(from)
		}
	}()
	return r
}

func (r *relay) forward(from net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	to, err := net.Dial("tcp", r.to)
	if err != nil {
		from.Close()
		return
	}
	r.open = append(r.open, from, to)
	go func() { _, _ = io.Copy(to, from); to.Close() }()
	go func() { _, _ = io.Copy(from, to); from.Close() }()
}

// redirect closes all connections, and forwards later ones to another address.
func (r *relay) redirect(to string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.open {
		c.Close()
	}
	r.open, r.to = nil, to
}
