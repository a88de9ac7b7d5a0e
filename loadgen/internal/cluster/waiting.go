package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// waitTold is how long a wait may take before a person is told of it.
	waitTold = 3 * time.Second
	// waitTellEvery is how often they are told that it goes on.
	waitTellEvery = 10 * time.Second
)

// Waiting tells what is waited for if that takes its time, until done is called.
func Waiting(tell func(line string), what string) (done func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var telling sync.WaitGroup
	began := time.Now()
	telling.Go(func() {
		for next := waitTold; ; next = waitTellEvery {
			timer := time.NewTimer(next)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
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
