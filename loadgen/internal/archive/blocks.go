package archive

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

// prometheusBlock is the length of the blocks that a Prometheus server writes. Each block begins at a multiple of this
// length. Blocks of another length would overlap with these blocks after an import.
const prometheusBlock = 2 * time.Hour

// appendAtMost is the number of appended samples after which fill commits them.
const appendAtMost = 100_000

// WriteBlocks writes the samples of q to dir, which must exist, as blocks of Prometheus' TSDB. start and end are in ms
// and inclusive. A block appears in dir only when it is complete.
func WriteBlocks(ctx context.Context, dir string, q storage.Queryable, start, end int64) (blocks, samples int, err error) {
	return blockWriter{q, prometheusBlock, func(points []promql.FPoint) []promql.FPoint { return points }}.write(ctx, dir, start, end)
}

// blockWriter writes blocks of a certain length with the samples of q that keep returns. keep gets the samples of one
// series, and may change the slice.
type blockWriter struct {
	q      storage.Queryable
	length time.Duration
	keep   func([]promql.FPoint) []promql.FPoint
}

func (b blockWriter) write(ctx context.Context, dir string, start, end int64) (blocks, samples int, err error) {
	length := b.length.Milliseconds()
	windows := map[int64]bool{} // start times of the blocks that have samples
	err = Stream(ctx, b.q, start, end, func(_ labels.Labels, points []promql.FPoint) error {
		for _, p := range points {
			windows[p.T-p.T%length] = true
		}
		return nil
	}, Named())
	if err != nil {
		return 0, 0, err
	}
	for _, from := range slices.Sorted(maps.Keys(windows)) {
		n, err := b.writeWindow(ctx, dir, max(from, start), min(from+length-1, end))
		if err != nil {
			return blocks, samples, err
		}
		if n > 0 {
			blocks, samples = blocks+1, samples+n
		}
	}
	return blocks, samples, nil
}

// writeWindow writes one block and returns the number of its samples. Without samples, it writes no block.
func (b blockWriter) writeWindow(ctx context.Context, dir string, start, end int64) (samples int, err error) {
	scratch, err := os.MkdirTemp("", "stormglass-block-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	o := tsdb.DefaultHeadOptions()
	// The chunk range is twice the block length: a head rejects samples that are more than half a chunk range older
	// than its newest sample.
	o.ChunkRange, o.ChunkDirRoot = 2*b.length.Milliseconds(), scratch
	o.StripeSize, o.ChunkWriteBufferSize = stripes, chunkBuffer
	log := slog.New(slog.DiscardHandler)
	head, err := tsdb.NewHead(nil, log, nil, nil, o, tsdb.NewHeadStats())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, head.Close()) }()
	if err := head.Init(math.MinInt64); err != nil {
		return 0, err
	}
	if samples, err = b.fill(ctx, head, start, end); err != nil || samples == 0 {
		return 0, err
	}
	compactor, err := tsdb.NewLeveledCompactorWithOptions(ctx, nil, log, []int64{b.length.Milliseconds()}, nil, tsdb.LeveledCompactorOptions{MaxBlockChunkSegmentSize: chunkFile})
	if err != nil {
		return 0, err
	}
	if _, err = compactor.Write(dir, head, head.MinTime(), head.MaxTime()+1, nil); err != nil {
		return 0, fmt.Errorf("write a block: %w", err)
	}
	return samples, nil
}

// fill copies the samples from start to end into a head block, without those that b.keep drops. It returns their
// number.
func (b blockWriter) fill(ctx context.Context, head *tsdb.Head, start, end int64) (samples int, err error) {
	app := head.AppenderV2(ctx)
	pending := 0
	err = Stream(ctx, b.q, start, end, func(l labels.Labels, points []promql.FPoint) error {
		points = b.keep(points)
		var ref storage.SeriesRef
		for _, p := range points {
			if ref, err = app.Append(ref, l, 0, p.T, p.F, nil, nil, storage.AOptions{}); err != nil {
				return fmt.Errorf("%s: %w", l, err)
			}
		}
		samples += len(points)
		if pending += len(points); pending < appendAtMost {
			return nil
		}
		pending = 0
		if err := app.Commit(); err != nil {
			return err
		}
		app = head.AppenderV2(ctx)
		return nil
	}, Named())
	if err != nil {
		return 0, errors.Join(err, app.Rollback())
	}
	return samples, app.Commit()
}
