package cluster

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// acted is a prober that simulates a cluster. Its behaviour depends on the time since the start.
type acted struct {
	began   time.Time
	answers func(at time.Duration) (after time.Duration, err error)
	dials   func(at time.Duration) error
}

func (a acted) ask(ctx context.Context) error {
	after, err := a.answers(time.Since(a.began))
	select {
	case <-time.After(after):
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a acted) dial(ctx context.Context) error {
	if a.dials == nil {
		return nil
	}
	err := a.dials(time.Since(a.began))
	if err != nil && !strings.Contains(err.Error(), "refused") { // a connection to an address without a host times out
		time.Sleep(dialWithin)
	}
	return err
}

func TestUnreachableClusterIsLost(t *testing.T) {
	const loss = 100*time.Second + 300*time.Millisecond
	never := 100 * time.Hour
	unreachable := &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
	away := func(from, to time.Duration, err error) func(time.Duration) (time.Duration, error) {
		return func(at time.Duration) (time.Duration, error) {
			if at < from || at >= to {
				return time.Millisecond, nil
			}
			return 0, err
		}
	}
	for name, c := range map[string]struct {
		answers func(time.Duration) (time.Duration, error)
		dials   func(time.Duration) error
		after   time.Duration // maximum time to notice the loss; zero: no loss
		want    string
	}{
		"refused": {answers: away(loss, never, refused()), after: LossWithin(refused()), want: "connection refused since "},
		"reset":   {answers: away(loss, never, os.NewSyscallError("read", syscall.ECONNRESET)), after: 5 * time.Second, want: "connection reset by peer since "},
		"a blink": {answers: away(loss, loss+2*time.Second, refused())},
		"many blinks": {answers: func(at time.Duration) (time.Duration, error) {
			return away(0, 3*time.Second, refused())(at % (4 * time.Second))
		}},
		"no descriptors here": {answers: away(loss, never, os.NewSyscallError("socket", syscall.EMFILE))},
		"slow answers":        {answers: func(time.Duration) (time.Duration, error) { return 50 * time.Second, nil }},
		"cut off": {
			answers: func(at time.Duration) (time.Duration, error) {
				if at < loss {
					return time.Millisecond, nil
				}
				return never, nil
			},
			dials: func(time.Duration) error { return unreachable }, after: LossWithin(unreachable), want: "no connection can be made since ",
		},
		"connections time out on a busy machine": {answers: away(loss, loss+12*time.Second, unreachable), dials: func(at time.Duration) error {
			if at >= loss && at < loss+12*time.Second {
				return unreachable
			}
			return nil
		}},
		"hangs": {
			answers: func(at time.Duration) (time.Duration, error) {
				if at < loss {
					return time.Millisecond, nil
				}
				return never, nil
			},
			after: silentFor + 2*time.Second, want: "it accepts connections but has not answered for 1m0s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				began := time.Now()
				err := awaitLoss(ctx, acted{began, c.answers, c.dials})
				took := time.Since(began)
				switch {
				case c.after == 0 && err != nil:
					t.Errorf("the cluster counts as gone after %s: %v", took, err)
				case c.after == 0:
				case err == nil || !strings.Contains(err.Error(), c.want):
					t.Errorf("got %v, want %s", err, c.want)
				case took < loss || took > loss+c.after:
					t.Errorf("noticed the loss after %s, want within %s", took-loss, c.after)
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}

// A run that only simulates nodes waits for the cluster even during a long outage, and reports each loss once.
func TestNodesWaitOutLosses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		answers := func(at time.Duration) (time.Duration, error) {
			if at > 10*time.Second && at < 10*time.Minute || at > 20*time.Minute && at < 20*time.Minute+30*time.Second {
				return 0, refused()
			}
			return time.Millisecond, nil
		}
		var said []string
		waitOutLosses(ctx, acted{time.Now(), answers, nil}, func(text string) { said = append(said, text) })
		if len(said) != 4 || !strings.Contains(said[0], "connection refused") || !strings.Contains(said[0], "the simulated nodes wait until the cluster answers") || !strings.HasPrefix(said[1], "answers again, after 9m4") {
			t.Errorf("%q", said)
		}
	})
}

// Any response of an API server shows that the cluster exists.
func TestAnyAnswerIsASignOfLife(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"unauthorized": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"overloaded":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) },
		"broken":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"redirects": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://127.0.0.1:1/", http.StatusFound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewTLSServer(answer)
			p, err := newProbe(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := p.ask(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if err := p.dial(t.Context()); err != nil {
				t.Error(err)
			}
			server.Close()
			if err := p.ask(t.Context()); err == nil || plainly(err) != "connection refused" {
				t.Errorf("request to a closed server: error %v, want connection refused", err)
			}
			if err := p.dial(t.Context()); err == nil {
				t.Error("dial succeeds for a closed server")
			}
		})
	}
}

// A server that closes every connection, like a load balancer without backends, does not respond. A server that speaks
// another protocol does.
func TestClosedConnectionsAreNoAnswer(t *testing.T) {
	p, err := newProbe(&rest.Config{Host: "https://" + listener(t, func(net.Conn) {})})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.ask(t.Context()); err == nil {
		t.Error("a closed connection counts as a response")
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	if p, err = newProbe(&rest.Config{Host: "https://" + plain.Listener.Addr().String()}); err != nil {
		t.Fatal(err)
	}
	if err := p.ask(t.Context()); err != nil {
		t.Errorf("plain HTTP on the HTTPS port: error %v, want nil", err)
	}
}
