package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// firstNotice is how long a wait may take before a person is told of it.
	firstNotice = 3 * time.Second
	// noticeInterval is how often they are told that it goes on.
	noticeInterval = 10 * time.Second
)

// Waiting announces a wait if it is long, until done is called.
func Waiting(tell func(line string), what string) (done func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var telling sync.WaitGroup
	began := time.Now()
	telling.Go(func() {
		for next := firstNotice; ; next = noticeInterval {
			select {
			case <-time.After(next):
			case <-ctx.Done():
				return
			}
			tell(fmt.Sprintf("waiting for %s, %s so far", what, time.Since(began).Round(time.Second)))
		}
	})
	return func() {
		cancel()
		telling.Wait()
	}
}
