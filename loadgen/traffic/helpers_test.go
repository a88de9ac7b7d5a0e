package traffic

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// load is a scenario's load with its defaults.
func load(kind string, change func(*scenario.Load)) scenario.Load {
	l := scenario.Load{
		Name: kind, Kind: kind, Rate: 500, Arrival: "constant", MaxInFlight: 1000,
		Timeout: scenario.Duration(10 * time.Second), Operation: scenario.Operation{Resource: configMapsResource},
		Objects: 3, Size: 64,
	}
	if change != nil {
		change(&l)
	}
	return l
}

// start runs a load and returns what stops it and waits for its end.
func start(t *testing.T, l Load) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("the load ended: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

// await waits until the condition holds, and fails the test if it does not for
// half a minute.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	deadline := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-look.C:
		case <-deadline:
			t.Fatalf("waited 30 s for %s", what)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
