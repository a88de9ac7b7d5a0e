package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
)

// The probe requests /livez of a user's cluster once a second, on a separate connection without credentials. Any
// response, even a late one or a 401, 429 or 503, keeps the run alive: a slow API server does not end it.
const (
	probeEvery = time.Second
	// unreachableFor is how long connections must fail before the cluster counts as gone.
	unreachableFor = 3 * time.Second
	// timeoutsFor replaces unreachableFor for connections that time out. It is longer, because a connection also times
	// out if this machine is too busy to establish it.
	timeoutsFor = 15 * time.Second
	// silentFor is how long a reachable server may take to respond to a request. kube-apiserver itself ends requests
	// after a minute.
	silentFor = time.Minute
	// dialWithin is the time limit to open a connection.
	dialWithin = time.Second
)

// LossWithin returns the time within which AwaitLoss notices that the cluster is gone. err is the error of a
// connection. The time is longer if err is a timeout.
func LossWithin(err error) time.Duration { return patience(err) + probeEvery + dialWithin }

func patience(err error) time.Duration {
	if timedOut(err) {
		return timeoutsFor
	}
	return unreachableFor
}

// AwaitLoss waits until the cluster is gone and returns the reason, or returns nil when ctx ends.
func (t *Target) AwaitLoss(ctx context.Context) error {
	p, err := newProbe(t.Admin)
	if err != nil {
		return fmt.Errorf("cluster %s (%s): %w", t.Cluster.Name, t.Cluster.Server, err)
	}
	if why := awaitLoss(ctx, p); why != nil {
		return fmt.Errorf("cluster %s (%s) can no longer be reached: %w", t.Cluster.Name, t.Cluster.Server, why)
	}
	return nil
}

// WaitOutLosses calls the function `say` when the cluster is gone and when it is back, until ctx ends. It returns an
// error if it cannot create the client for these checks.
func (t *Target) WaitOutLosses(ctx context.Context, say func(string)) error {
	p, err := newProbe(t.Admin)
	if err != nil {
		return fmt.Errorf("cluster %s (%s): %w", t.Cluster.Name, t.Cluster.Server, err)
	}
	waitOutLosses(ctx, p, func(text string) { say(fmt.Sprintf("cluster %s (%s) %s", t.Cluster.Name, t.Cluster.Server, text)) })
	return nil
}

func waitOutLosses(ctx context.Context, p prober, say func(string)) {
	for {
		why := awaitLoss(ctx, p)
		if why == nil {
			return
		}
		say(fmt.Sprintf("cannot be reached: %v; the simulated nodes wait until the cluster answers again", why))
		gone := time.Now()
		for p.ask(ctx) != nil {
			if !apiclient.Pause(ctx, probeEvery) {
				return
			}
		}
		say(fmt.Sprintf("answers again, after %s", time.Since(gone).Round(time.Second)))
	}
}

type prober interface {
	// ask sends a request. It returns nil if any response arrives, even an error status.
	ask(context.Context) error
	// dial returns nil if it can open a connection.
	dial(context.Context) error
}

// awaitLoss sends requests until the cluster is gone or ctx ends. While it waits for a response, it checks each second
// whether the server is still reachable.
func awaitLoss(ctx context.Context, p prober) error {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	ctx, cancel := context.WithCancel(ctx) // ends the request in flight
	defer cancel()
	var lost time.Time    // when the cluster became unreachable; zero if it can be reached
	var answer chan error // result of the request in flight; nil if no request is in flight
	var asked time.Time
	for {
		if answer == nil {
			asked, answer = time.Now(), make(chan error, 1)
			go func(answer chan<- error) { answer <- p.ask(ctx) }(answer)
		}
		began := time.Now()
		var err error
		select {
		case err = <-answer:
			answer = nil
		case <-tick.C:
			err = p.dial(ctx)
			if err == nil && time.Since(asked) >= silentFor {
				return fmt.Errorf("it accepts connections but has not answered for %s", silentFor)
			}
		case <-ctx.Done():
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil, ours(err):
			lost = time.Time{}
		case lost.IsZero():
			lost = began
		}
		if !lost.IsZero() && time.Since(lost) >= patience(err) {
			return fmt.Errorf("%s since %s", plainly(err), lost.UTC().Format("15:04:05 MST"))
		}
		if answer == nil {
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}
}

// ours reports whether a connection failed because this machine lacks file descriptors, ports or another resource.
func ours(err error) bool {
	var code syscall.Errno
	return errors.As(err, &code) && slices.Contains(
		[]syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS, syscall.ENOMEM}, code)
}

func timedOut(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// plainly returns the text of a connection error without the address, which the caller's message contains.
func plainly(err error) string {
	var dns *net.DNSError
	var code syscall.Errno
	switch {
	case ofProxy(err) != nil:
		return "its proxy cannot be used: " + oneLine(ofProxy(err))
	case errors.As(err, &dns):
		return "no such host " + dns.Name
	case errors.As(err, &code):
		return code.Error()
	case timedOut(err):
		return "no connection can be made"
	}
	return "the cluster closes connections without a response"
}

type probe struct {
	client  http.Client
	url     string
	network func(context.Context, string, string) (net.Conn, error)
	address string
}

func newProbe(cfg *rest.Config) (*probe, error) {
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, err
	}
	dial, err := apiclient.Dialer(cfg)
	if err != nil {
		return nil, err
	}
	p := &probe{url: base.JoinPath("/livez").String(), address: base.Host}
	p.network = func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialWithin)
		defer cancel()
		return dial(ctx, network, address)
	}
	if base.Port() == "" {
		p.address = net.JoinHostPort(base.Hostname(), map[string]string{"http": "80", "https": "443"}[base.Scheme])
	}
	p.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	p.client.Transport = &http.Transport{
		DialContext: p.network, MaxIdleConns: 1, DisableCompression: true,
		// send no credentials, and accept any response
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ServerName: cfg.ServerName},
	}
	return p, nil
}

func (p *probe) ask(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		if unanswered(err) {
			return err
		}
		return nil // the response is not HTTP over TLS, but it is a response
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16)) // so that the connection can be reused
	return resp.Body.Close()
}

// unanswered reports whether err means that the connection could not be opened, or that it was closed before the server
// sent a response.
func unanswered(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || ofProxy(err) != nil ||
		errors.As(err, new(*net.DNSError)) || errors.As(err, new(syscall.Errno)) || timedOut(err)
}

func (p *probe) dial(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	conn, err := p.network(ctx, "tcp", p.address)
	if err != nil {
		return err
	}
	return conn.Close()
}
