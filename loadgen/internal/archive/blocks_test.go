package archive_test

import (
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// WriteBlocks reads only windows that have samples. Samples can be decades apart.
func TestBlocksOfSamplesFarApart(t *testing.T) {
	x, later := labels.FromStrings("__name__", "x"), (30 * 24 * time.Hour).Milliseconds()
	db := stored(t, x)
	app := db.AppenderV2(t.Context())
	if _, err := app.Append(0, x, 0, later, 1, nil, nil, storage.AOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
	opened := 0
	q := storage.QueryableFunc(func(from, to int64) (storage.Querier, error) {
		opened++
		return db.Querier(from, to)
	})
	blocks, samples, err := archive.WriteBlocks(t.Context(), t.TempDir(), q, 0, later)
	if err != nil || blocks != 2 || samples != 2 || opened > 3 {
		t.Errorf("%d blocks of %d samples, read in %d parts: %v", blocks, samples, opened, err)
	}
}
