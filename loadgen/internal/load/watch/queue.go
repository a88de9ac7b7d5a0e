package watch

import (
	"context"
	"errors"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
)

// eachOpeners make connections of the watches' own; each waits for the network. One fills shared ones.
const eachOpeners = 16

// opener makes attempts, one at a time.
type opener struct {
	set        *Watches
	fast, slow *shared
	path       []byte
}

func newOpener(w *Watches) *opener {
	return &opener{
		set:  w,
		fast: &shared{set: w, options: h2conn.Options{ReadBuffer: sharedBuffer, Queued: true}},
		slow: &shared{set: w, options: h2conn.Options{Queued: true, StreamWindow: uint32(w.load.Slow.Window)}},
	}
}

func (o *opener) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case v := <-o.set.queue:
			v.attempt(ctx, o)
		case <-ctx.Done():
		}
	}
}

func (o *opener) open(ctx context.Context, v *watcher, s *h2conn.Stream, t *h2conn.Template) error {
	if o.set.load.Connect == "each" {
		return o.openOwn(ctx, v, s, t)
	}
	p := o.fast
	if v.slow {
		p = o.slow
	}
	return p.open(ctx, s, t, o.path, func(l *connection) h2conn.Handler {
		v.connection = l
		return v
	})
}

// openOwn opens a stream on the watch's own connection, made anew when it takes no more.
func (o *opener) openOwn(ctx context.Context, v *watcher, s *h2conn.Stream, t *h2conn.Template) error {
	if v.connection != nil {
		err := v.connection.conn.TryOpen(s, t, o.path, nil, v)
		if err == nil || errors.Is(err, h2conn.ErrBusy) {
			return err
		}
	}
	var options h2conn.Options
	if v.slow {
		options.StreamWindow = uint32(o.set.load.Slow.Window)
	}
	l, err := o.set.dial(ctx, options)
	if err != nil {
		return err
	}
	if v.connection != nil {
		v.connection.conn.Close() // it may be going away, slowly
	}
	v.connection = l
	return l.conn.TryOpen(s, t, o.path, nil, v)
}
