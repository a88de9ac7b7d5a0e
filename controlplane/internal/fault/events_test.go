package fault

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

func TestEventsAreNumberedAndKeptInBounds(t *testing.T) {
	var e Events
	const all = eventsKept + 100
	for range all {
		e.Append(control.Event{Kind: control.EventExit})
	}
	for _, test := range []struct{ after, first, count int64 }{
		{0, 101, eventsKept}, {100, 101, eventsKept}, {101, 102, eventsKept - 1}, {all - 1, all, 1}, {-5, 101, eventsKept},
	} {
		got, err := e.After(t.Context(), test.after)
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(got)) != test.count || got[0].Seq != test.first {
			t.Fatalf("After(%d): %d events from %d, want %d from %d", test.after, len(got), got[0].Seq, test.count, test.first)
		}
		for i, event := range got {
			if event.Seq != test.first+int64(i) {
				t.Fatalf("After(%d): event %d has number %d", test.after, i, event.Seq)
			}
		}
	}
}

func TestEventsAfterWaitsForAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e Events
		e.Append(control.Event{Kind: control.EventStart})
		go func() {
			time.Sleep(time.Minute)
			e.Append(control.Event{Kind: control.EventReady})
		}()
		begun := time.Now()
		got, _ := e.After(t.Context(), 1)
		if len(got) != 1 || got[0].Seq != 2 || got[0].Kind != control.EventReady || time.Since(begun) != time.Minute {
			t.Errorf("After returned after %v: %v", time.Since(begun), got)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got, err := e.After(ctx, 2); got != nil || err != nil {
			t.Errorf("After = %v, %v; want no event", got, err)
		}

		ended := make(chan error)
		go func() {
			_, err := e.After(t.Context(), 2)
			ended <- err
		}()
		synctest.Wait()
		e.Close()
		if err := <-ended; !errors.Is(err, control.ErrEnded) {
			t.Errorf("After while the log was closed = %v, want ErrEnded", err)
		}
		if got, err := e.After(t.Context(), 0); len(got) != 2 || err != nil {
			t.Errorf("After with a closed log = %v, %v; want the two events", got, err)
		}
	})
}
