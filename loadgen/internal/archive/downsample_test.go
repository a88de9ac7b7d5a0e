package archive_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Downsample keeps the last sample of each interval, both ends of each series, the bounds of the run, and staleness markers
// with their neighbours.
func TestDownsample(t *testing.T) {
	dir, coarse := t.TempDir(), t.TempDir()
	db, err := archive.OpenStore(filepath.Join(dir, result.TSDBDir), 0)
	if err != nil {
		t.Fatal(err)
	}
	app := db.AppenderV2(t.Context())
	add := func(name string, seconds int64, v float64) {
		t.Helper()
		if _, err := app.Append(0, labels.FromStrings("__name__", name), 0, seconds*1000, v, nil, nil, storage.AOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for s := int64(3600); s <= 3900; s += 10 {
		if s > 3600 {
			add("up", s, 1)
		}
		switch v := float64(s); {
		case s == 3740:
			add("gauge", s, math.Float64frombits(value.StaleNaN))
		case s < 3890:
			add("gauge", s, v)
		}
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := archive.Seal(filepath.Join(dir, result.TSDBDir), db); err != nil {
		t.Fatal(err)
	}
	fine, err := archive.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer fine.Close()
	to := filepath.Join(coarse, result.TSDBDir)
	if err := os.Mkdir(to, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := fine.Downsample(t.Context(), to, time.Minute); err != nil {
		t.Fatal(err)
	}
	a, err := archive.Open(coarse)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	q, _ := a.Storage()
	got := map[string][]int64{}
	err = archive.Stream(t.Context(), q, 0, math.MaxInt64/2, func(l labels.Labels, points []promql.FPoint) error {
		for _, p := range points {
			got[l.Get("__name__")] = append(got[l.Get("__name__")], p.T/1000)
			if stale := value.IsStaleNaN(p.F); stale != (p.T == 3740_000 && l.Get("__name__") == "gauge") {
				t.Errorf("%s at %d: %v", l, p.T, p.F)
			}
		}
		return nil
	}, archive.Named())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]int64{
		"up":    {3610, 3650, 3710, 3770, 3830, 3890, 3900},
		"gauge": {3600, 3610, 3650, 3710, 3730, 3740, 3750, 3770, 3830, 3880},
	} {
		if !slices.Equal(got[name], want) {
			t.Errorf("%s: %v, want %v", name, got[name], want)
		}
	}
}

// A query finds samples that are up to an hour apart.
func TestQueryBetweenDistantSamples(t *testing.T) {
	a := archive.Evaluating(stored(t, labels.FromStrings("__name__", "x")))
	later := time.UnixMilli(1000).Add(59 * time.Minute)
	if found, err := a.Instant(t.Context(), "x", later); err != nil || len(found) != 0 {
		t.Errorf("with the usual interval: %v, %v", found, err)
	}
	a.SetInterval(time.Hour)
	if found, err := a.Instant(t.Context(), "x", later); err != nil || len(found) != 1 {
		t.Errorf("with samples an hour apart: %v, %v", found, err)
	}
}
