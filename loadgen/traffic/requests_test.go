package traffic

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// request runs a request load on a real connection until so many requests have
// ended.
func request(t *testing.T, target Target, atLeast int64, change func(*scenario.Load)) result.Requests {
	t.Helper()
	r, err := NewRequests(target, load("requests", func(l *scenario.Load) { l.Verb = "get"; change(l) }))
	must(t, err)
	must(t, r.Prepare(context.Background()))
	r.BeginPhase("storm", time.Now())
	stop := start(t, r)
	await(t, "requests", func() bool { return r.Results()["storm"].Latency.Count >= atLeast })
	stop()
	got := r.Results()["storm"]
	var ended int64
	for _, n := range got.Outcomes {
		ended += n
	}
	if ended != got.Sent || got.Sent+got.Unsent != got.Offered || got.Latency.Count != got.Sent {
		t.Errorf("offered %d, sent %d, unsent %d, outcomes %v: they do not add up", got.Offered, got.Sent, got.Unsent, got.Outcomes)
	}
	return got
}

// Every way an answer can fail has a name, and none is tried again: the server
// sees as many requests as were sent.
func TestOutcomesByKind(t *testing.T) {
	t.Parallel()
	for kind, fail := range map[string]func(w http.ResponseWriter, r *http.Request){
		"429": func(w http.ResponseWriter, _ *http.Request) { answer(w, 429, status(429, "slow down")) },
		"500": func(w http.ResponseWriter, _ *http.Request) { answer(w, 500, status(500, "oh")) },
		"reset": func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		},
		"timeout": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"truncated": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{"))
		},
	} {
		for _, verb := range []string{"get", "patch"} {
			t.Run(kind+" "+verb, func(t *testing.T) {
				t.Parallel()
				var hits atomic.Int64
				s := newStub(t, nil)
				s.intercept = func(w http.ResponseWriter, r *http.Request) bool {
					if r.Method == http.MethodPost {
						return false
					}
					hits.Add(1)
					fail(w, r)
					return true
				}
				got := request(t, s.target(), 20, func(l *scenario.Load) {
					l.Verb, l.Rate, l.Timeout = verb, 200, scenario.Duration(200*time.Millisecond)
				})
				if got.Outcomes[kind] != got.Sent || got.Succeeded != 0 {
					t.Errorf("outcomes %v, want all %d %q", got.Outcomes, got.Sent, kind)
				}
				if hits.Load() != got.Sent {
					t.Errorf("the server saw %d requests of %d sent: something tries again", hits.Load(), got.Sent)
				}
			})
		}
	}
}

// A server that refuses streams (GOAWAY) or closes kept connections makes Go's
// own transport send again, silently. Ours counts.
func TestLostConnectionsAreNotRepeated(t *testing.T) {
	t.Parallel()
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var hits atomic.Int64
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch n := hits.Add(1); {
				case n%3 != 0:
					_, _ = w.Write([]byte("{}"))
				case http2:
					w.Header().Set("Connection", "close") // GOAWAY after this answer
				default:
					conn, _, err := http.NewResponseController(w).Hijack()
					if err == nil {
						conn.Close()
					}
				}
			}))
			s.EnableHTTP2 = http2
			s.StartTLS()
			defer s.Close()
			target := Target{Config: &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{CAData: pemOf(s.TLS.Certificates[0].Certificate[0])}}, Namespace: "storm"}
			before := int64(3) // objects made beforehand, on the fourth answer at the latest
			got := request(t, target, 100, func(l *scenario.Load) { l.Rate = 300 })
			if http2 {
				// Streams past the GOAWAY may have been refused: sent, not seen.
				if got.Outcomes["200"]+got.Outcomes["reset"] != got.Sent {
					t.Errorf("outcomes %v of %d sent, want 200 or reset", got.Outcomes, got.Sent)
				}
				return
			}
			if got.Outcomes["reset"] == 0 || got.Outcomes["200"]+got.Outcomes["reset"] != got.Sent {
				t.Errorf("outcomes %v of %d sent, want 200 or reset", got.Outcomes, got.Sent)
			}
			if seen := hits.Load(); seen > got.Sent+2*before {
				t.Errorf("the server saw %d requests of %d sent: something tries again", seen, got.Sent)
			}
		})
	}
}

func TestRefusedConnections(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := listener.Addr().String()
	listener.Close()
	r, err := NewRequests(Target{Config: &rest.Config{Host: "http://" + address}, Namespace: "storm"},
		load("requests", func(l *scenario.Load) { l.Verb = "get" }))
	must(t, err)
	r.BeginPhase("storm", time.Now())
	stop := start(t, r) // without Prepare: nobody listens
	await(t, "requests", func() bool { return r.Results()["storm"].Latency.Count >= 20 })
	stop()
	if got := r.Results()["storm"]; got.Outcomes["refused"] != got.Sent {
		t.Errorf("outcomes %v, want all %d refused", got.Outcomes, got.Sent)
	}
}

// Each verb does to the objects what it says.
func TestVerbs(t *testing.T) {
	t.Parallel()
	for verb, want := range map[string]string{
		"get": "GET " + stubPath + "/requests-", "list": "GET " + stubPath,
		"create": "POST " + stubPath, "update": "PUT " + stubPath + "/requests-",
		"patch": "PATCH " + stubPath + "/requests-", "delete": "DELETE " + stubPath + "/requests-",
	} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			s := newStub(t, nil)
			got := request(t, s.target(), 50, func(l *scenario.Load) { l.Verb, l.Rate = verb, 200 })
			if got.Outcomes["200"] != got.Sent || got.Sent == 0 {
				t.Errorf("outcomes %v of %d sent, want all 200", got.Outcomes, got.Sent)
			}
			n := int64(0)
			for _, r := range s.requests() {
				if strings.HasPrefix(r, want) {
					n++
				}
			}
			if n != got.Sent {
				t.Errorf("the server saw %d of %q, %d were sent", n, want, got.Sent)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			for name, o := range s.objects {
				if o.Metadata.Labels[LoadLabel] != "requests" || o.Metadata.Labels["stormglass.dev/run"] != "test" {
					t.Errorf("labels of %s: %v", name, o.Metadata.Labels)
				}
				if len(o.Data["payload"]) != 64 {
					t.Errorf("payload of %s has %d bytes, want 64", name, len(o.Data["payload"]))
				}
			}
			if verb == "delete" && len(s.objects) != 3 {
				t.Errorf("%d objects at the end, want the 3 made again", len(s.objects))
			}
		})
	}
}
