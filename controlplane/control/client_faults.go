package control

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"syscall"
)

// FaultRefusal is the control socket's answer, with a status from 400, when a
// fault is not begun or not undone.
type FaultRefusal struct {
	// Error says why.
	Error string `json:"error"`
	// Problems are there if the fault itself is wrong.
	Problems []Problem `json:"problems,omitempty"`
}

// Begin begins a fault and returns when it is in force. The supervisor ends it by
// itself when its length is over. If ctx ends before it is in force it is undone
// and never was. An *InvalidFault means that this plane can never have it.
func (c *Client) Begin(ctx context.Context, f Fault) (FaultStatus, error) {
	var status FaultStatus
	err := c.call(ctx, http.MethodPost, "/v1/faults", f, &status)
	return status, err
}

// Check reports whether Begin would begin the fault now, and changes nothing: its
// fields, the components, what this machine must have for it.
func (c *Client) Check(ctx context.Context, f Fault) error {
	return c.call(ctx, http.MethodPost, "/v1/faults/check", f, nil)
}

// Clear ends a fault before its time and returns when it is undone. One that
// has ended already is no error.
func (c *Client) Clear(ctx context.Context, id string) (FaultStatus, error) {
	var status FaultStatus
	err := c.call(ctx, http.MethodDelete, "/v1/faults/"+url.PathEscape(id), nil, &status)
	return status, err
}

// ClearAll ends all faults and returns when they are undone. It returns those that
// it has ended.
func (c *Client) ClearAll(ctx context.Context) ([]FaultStatus, error) {
	var list []FaultStatus
	err := c.call(ctx, http.MethodDelete, "/v1/faults", nil, &list)
	return list, err
}

// Faults lists the plane's faults in the order of their requests:
// all that are in force, and the last of those that have ended.
func (c *Client) Faults(ctx context.Context) ([]FaultStatus, error) {
	var list []FaultStatus
	err := c.call(ctx, http.MethodGet, "/v1/faults", nil, &list)
	return list, err
}

// ErrEnded means that there will be no more events.
var ErrEnded = errors.New("the plane has ended")

// Events returns the events with numbers over after, oldest first. If there are
// none it waits for one: half a minute at most, then it returns none. The supervisor
// keeps the last few thousand; a gap in the numbers means that some were dropped.
// When the plane ends it returns ErrEnded, and afterwards.
func (c *Client) Events(ctx context.Context, after int64) ([]Event, error) {
	var events []Event
	err := c.call(ctx, http.MethodGet, "/v1/events?after="+strconv.FormatInt(after, 10), nil, &events)
	for _, gone := range []error{os.ErrNotExist, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, gone) { // the socket has no listener any more
			return nil, ErrEnded
		}
	}
	return events, err
}
