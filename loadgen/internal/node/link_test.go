package node

import (
	"context"
	"errors"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
)

// A context can end while the read loop stores the response. The race detector checks that the two share no data.
func TestCallIsCancelledDuringItsAnswer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var results []error
	e := &exchange{
		link: &link{}, ctx: ctx, unhook: func() bool { return false },
		done: func(_ []byte, err error) { results = append(results, err) },
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		e.Header(h2conn.Header{Status: 200})
		e.Data([]byte("{}"))
	}()
	e.cancel()
	<-answered
	e.End(nil)
	if len(results) != 1 || !errors.Is(results[0], context.Canceled) {
		t.Errorf("done was called with %v, want one context.Canceled", results)
	}
}
