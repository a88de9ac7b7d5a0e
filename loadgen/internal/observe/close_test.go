package observe_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/stormglass/stormglass/loadgen/internal/observe"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
)

// endless is a recorder on which a query reads the storage until it is cancelled, and a little longer.
type endless struct {
	down
	reading chan struct{}
	read    atomic.Bool
}

func (e *endless) Live() scrape.Storage { return e }

func (e *endless) Querier(int64, int64) (storage.Querier, error) {
	return endlessQuerier{storage.NoopQuerier(), e}, nil
}

type endlessQuerier struct {
	storage.Querier
	*endless
}

func (q endlessQuerier) Select(ctx context.Context, _ bool, _ *storage.SelectHints, _ ...*labels.Matcher) storage.SeriesSet {
	close(q.reading)
	<-ctx.Done()
	for range 1_000_000 { // like a query in the middle of many chunks
		runtime.Gosched()
	}
	q.read.Store(true)
	return storage.ErrSeriesSet(errors.New("called off"))
}

// TestCloseWaits: when the server is closed, all reads of the storage have ended. The
// storage is closed next.
func TestCloseWaits(t *testing.T) {
	e := &endless{down: newDown(t), reading: make(chan struct{})}
	s, err := observe.Start(listen(t), observe.Config{Recorder: e})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if resp, err := http.Get(s.URL() + "/api/v1/query?query=up"); err == nil {
			resp.Body.Close()
		}
	}()
	<-e.reading
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if !e.read.Load() {
		t.Error("the storage is still being read")
	}
}
