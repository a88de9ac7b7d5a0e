package realplane

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/history"
	"github.com/stormglass/stormglass/loadgen/result"
)

// The history of an undisturbed plane shows no violation. If the test changes objects itself, the history shows it, so
// the first result is not an empty pass.
func TestHistory(t *testing.T) {
	config := loadConfig(t)
	maps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")

	t.Run("left alone", func(t *testing.T) {
		r := past(t, config, "alone", nil)
		if r.ViolationCount > 0 || len(r.Unjudged) > 0 || r.Linearizable != "yes" {
			t.Errorf("linearizable: %s, %+v, unjudged %q", r.Linearizable, r.Violations, r.Unjudged)
		}
		if r.Writes.Succeeded == 0 || r.Writes.Conflicts == 0 || r.CachedReads.Succeeded == 0 || r.Events != 3*r.Writes.Succeeded {
			t.Errorf("%+v", r)
		}
		if all := r.Writes.Refused + r.Writes.Unknown + r.Reads.Refused + r.Reads.Unknown; all > 0 {
			t.Errorf("%d operations failed: %+v", all, r)
		}
	})
	t.Run("an old value put back", func(t *testing.T) {
		r := past(t, config, "back", func(ctx context.Context) {
			register, err := maps.Get(ctx, "back-0", metav1.GetOptions{})
			must(t, err)
			register.ResourceVersion, register.Data = "", map[string]string{"value": "0"}
			_, err = maps.Update(ctx, register, metav1.UpdateOptions{})
			must(t, err)
		})
		if r.ViolationCounts[result.Phantom] == 0 || r.Linearizable != "no" {
			t.Errorf("linearizable: %s, %v", r.Linearizable, r.ViolationCounts)
		}
	})
	t.Run("a register deleted", func(t *testing.T) {
		r := past(t, config, "gone", func(ctx context.Context) {
			must(t, maps.Delete(ctx, "gone-0", metav1.DeleteOptions{}))
		})
		if r.LostWrites == 0 || r.ViolationCounts[result.Phantom] == 0 || r.Linearizable != "no" {
			t.Errorf("lost: %d, linearizable: %s, %v", r.LostWrites, r.Linearizable, r.ViolationCounts)
		}
	})
}

// past records a history and returns it. It calls meddle, if not nil, in the middle of the history.
func past(t *testing.T, config *rest.Config, name string, meddle func(context.Context)) result.History {
	t.Helper()
	l, err := history.New(load.Target{Config: config, Namespace: "default", Seed: 1}, history.Config{
		Name: name, Registers: 3, Rate: 100, Quiet: 100 * time.Millisecond, Drain: 2 * time.Minute, Timeout: time.Minute,
	})
	must(t, err)
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	must(t, l.Prepare(ctx))
	running, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- l.Run(running) }()
	poll(t, ctx, func() bool { return l.Results().Writes.Succeeded >= 50 })
	if meddle != nil {
		meddle(ctx)
	}
	poll(t, ctx, func() bool {
		r := l.Results()
		return r.Writes.Succeeded >= 100 && r.Writes.Conflicts > 0 && r.CachedReads.Succeeded > 0
	})
	stop()
	must(t, <-done)
	must(t, l.Finish(ctx, t.Logf))
	return l.Results()
}

// poll waits until cond holds.
func poll(t *testing.T, ctx context.Context, cond func() bool) {
	t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for !cond() {
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatal(context.Cause(ctx))
		}
	}
}
