package watch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/listwatch"
	"github.com/stormglass/stormglass/loadgen/internal/load"
)

// Limits of the list before the first watches. The load does not measure the list's requests, and retries them while
// the server is overloaded or unreachable.
const (
	listTimeout  = time.Minute
	listAttempts = 8
	listBackoff  = 250 * time.Millisecond
	// keptRefusal is the maximum number of bytes of an unsuccessful response that are kept for the error message.
	keptRefusal = 4 << 10
)

// firstList lists the load's objects with a consistent read. It returns the version of the list.
func (w *Watches) firstList(ctx context.Context) (uint64, error) {
	p := newOpener(w).fast
	defer func() {
		for _, l := range p.connections {
			l.conn.Close()
		}
	}()
	wait := listBackoff
	for attempt := 1; ; attempt++ {
		l := &lister{done: make(chan error, 1)}
		err := w.listOnce(ctx, p, l)
		if err == nil && l.rv > 0 {
			return l.rv, nil
		}
		if err == nil {
			err = errors.New("the response has no resourceVersion")
		}
		again := l.status == 0 || l.status == http.StatusTooManyRequests || l.status >= 500
		if !again || attempt == listAttempts || ctx.Err() != nil {
			return 0, fmt.Errorf("list %s: %w", w.load.Resource, err)
		}
		if !apiclient.Pause(ctx, max(wait, l.retryAfter)) {
			return 0, context.Cause(ctx)
		}
		wait *= 2
		p.failed = nil
	}
}

func (w *Watches) listOnce(ctx context.Context, p *shared, l *lister) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	l.scan = w.requests.scanner(l, levelObject)
	l.stream = &h2conn.Stream{}
	path := w.requests.appendPath(nil, listwatch.FreshList, 0, 0)
	if err := p.open(ctx, l.stream, w.templates.list.Load(), path, func(*connection) h2conn.Handler { return l }); err != nil {
		return err
	}
	select {
	case err := <-l.done:
		return err
	case <-ctx.Done():
		l.stream.CancelWith(ctx.Err())
		return <-l.done
	}
}

type lister struct {
	stream     *h2conn.Stream
	scan       scanner
	rv         uint64
	status     int
	retryAfter time.Duration
	refused    []byte
	failed     error
	done       chan error
}

func (l *lister) take(e *event) error {
	l.rv = e.rv
	return nil
}

func (l *lister) Header(h h2conn.Header) { l.status, l.retryAfter = h.Status, h.RetryAfter }

func (l *lister) Data(p []byte) {
	if l.status != http.StatusOK {
		l.refused = append(l.refused, p[:min(len(p), keptRefusal-len(l.refused))]...)
		if len(l.refused) == keptRefusal {
			l.stream.CancelWith(nil)
		}
		return
	}
	if l.failed == nil {
		if l.failed = l.scan.feed(p); l.failed != nil {
			l.stream.CancelWith(l.failed)
		}
	}
}

func (l *lister) End(err error) {
	switch {
	case l.failed != nil:
		err = l.failed
	case l.status != 0 && l.status != http.StatusOK:
		err = load.Refusal("list", l.status, l.refused)
	case err == nil && !l.scan.idle():
		err = malformed("the list ends too early")
	}
	l.done <- err
}
