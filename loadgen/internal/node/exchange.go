package node

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"
)

// maxAnswer bounds how much of an exchange's answer is read, in bytes.
const maxAnswer = 1 << 20

// exchange is one request whose answer no goroutine waits for: a sleeping one costs a stack and a wake.
type exchange struct {
	link   *link
	call   call
	done   func(answer []byte, err error)
	over   atomic.Bool
	stream atomic.Pointer[h2conn.Stream]
	ctx    context.Context
	unhook func() bool // of ctx
	header h2conn.Header
	body   []byte
}

// start sends a call and returns; it waits only for a connection and a free stream. done gets what do would
// return, once, and must not block: it is called on the read loop, on the caller's goroutine where nothing was
// sent, or on one of its own when ctx has ended.
func (l *link) start(ctx context.Context, c call, done func(answer []byte, err error)) {
	e := &exchange{link: l, call: c, done: done, ctx: ctx}
	conn, err := l.get(ctx)
	var r *h2conn.Request
	if err == nil {
		r, err = l.request(c)
	}
	if err != nil {
		e.finish(err)
		return
	}
	r.Accept = protobuf.ContentType
	e.unhook = context.AfterFunc(ctx, e.cancel)
	stream, err := conn.Open(r, e)
	if err != nil {
		e.unhook()
		e.finish(err)
		return
	}
	e.stream.Store(stream)
	if ctx.Err() != nil {
		e.cancel()
	}
}

func (e *exchange) cancel() {
	if s := e.stream.Load(); s != nil {
		s.Cancel()
	}
	e.finish(e.ctx.Err())
}

// Header, Data and End are called by the connection.
func (e *exchange) Header(h h2conn.Header) { e.header = h }

// Data brings a piece of the body.
func (e *exchange) Data(p []byte) {
	if e.call.blind && e.header.Status/100 == 2 {
		return
	}
	if len(e.body) <= maxAnswer {
		e.body = append(e.body, p...)
	}
}

// End is the end of the answer.
func (e *exchange) End(err error) {
	e.unhook()
	if err == nil && len(e.body) > maxAnswer {
		err = fmt.Errorf("an answer of more than %d bytes", maxAnswer)
	}
	e.finish(err)
}

func (e *exchange) finish(err error) {
	if e.over.CompareAndSwap(false, true) {
		e.done(e.link.settle(e.ctx, e.call, e.header, e.body, err))
	}
}

// settle counts a call and makes of its answer what the caller gets.
func (l *link) settle(ctx context.Context, c call, h h2conn.Header, body []byte, err error) ([]byte, error) {
	if err != nil {
		if ctx.Err() == nil {
			l.ledger.request(c.verb, c.resource, outcome(err))
		}
		return nil, fmt.Errorf("%s %s: %w", c.verb, c.resource, err)
	}
	l.ledger.request(c.verb, c.resource, strconv.Itoa(h.Status))
	if h.Status/100 != 2 {
		return nil, fmt.Errorf("%s %s: %w", c.verb, c.resource, statusError(h, body))
	}
	return body, nil
}
