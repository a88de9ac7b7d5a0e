package archive

import (
	"sync"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunks"
)

// decoded is a block that decodes the labels and chunk references of each series once for all queries. Decoding is
// slow, because the index looks up each label in its symbol table, and a report reads the same series many times.
type decoded struct {
	tsdb.BlockReader

	mu    sync.RWMutex
	known map[storage.SeriesRef]decodedSeries
}

type decodedSeries struct {
	labels labels.Labels
	chunks []chunks.Meta
}

// Index implements tsdb.BlockReader.
func (d *decoded) Index() (tsdb.IndexReader, error) {
	r, err := d.BlockReader.Index()
	if err != nil {
		return nil, err
	}
	return decodedIndex{r, d}, nil
}

// series returns the decoded series with the reference ref. It decodes the series on first use.
func (d *decoded) series(ref storage.SeriesRef, builder *labels.ScratchBuilder, from tsdb.IndexReader) (decodedSeries, error) {
	d.mu.RLock()
	s, ok := d.known[ref]
	d.mu.RUnlock()
	if ok {
		return s, nil
	}
	if err := from.Series(ref, builder, &s.chunks); err != nil {
		return s, err
	}
	s.labels = builder.Labels()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known[ref] = s
	return s, nil
}

type decodedIndex struct {
	tsdb.IndexReader
	block *decoded
}

// Series implements tsdb.IndexReader.
func (i decodedIndex) Series(ref storage.SeriesRef, builder *labels.ScratchBuilder, metas *[]chunks.Meta) error {
	s, err := i.block.series(ref, builder, i.IndexReader)
	if err != nil {
		return err
	}
	builder.Reset()
	builder.Assign(s.labels)
	if metas != nil {
		*metas = append((*metas)[:0], s.chunks...)
	}
	return nil
}
