package h2conn

import (
	"context"
	"fmt"
)

// maxBody bounds a response that is read into memory.
const maxBody = 64 << 20

// Response is a whole response.
type Response struct {
	Header
	Body []byte
}

// RoundTrip sends a request and waits for the whole response or the end of ctx.
func (c *Conn) RoundTrip(ctx context.Context, r *Request) (*Response, error) {
	w := &waiter{done: make(chan struct{})}
	s, err := c.Open(r, w)
	if err != nil {
		return nil, err
	}
	select {
	case <-w.done:
		if w.err != nil {
			return nil, w.err
		}
		return &w.response, nil
	case <-ctx.Done():
		s.Cancel()
		return nil, ctx.Err()
	}
}

type waiter struct {
	response Response
	err      error
	done     chan struct{}
}

func (w *waiter) Header(h Header) { w.response.Header = h }

func (w *waiter) Data(p []byte) {
	if w.err != nil {
		return
	}
	if len(w.response.Body)+len(p) > maxBody {
		w.err = fmt.Errorf("response of more than %d bytes", maxBody)
		w.response.Body = nil
		return
	}
	w.response.Body = append(w.response.Body, p...)
}

func (w *waiter) End(err error) {
	if w.err == nil {
		w.err = err
	}
	close(w.done)
}
