package spans

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/stormglass/stormglass/internal/atomicfile"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Files in the directory Dir of a run. SpansFile contains OTLP/JSON, one line for each kept trace, or several lines if the
// trace is very large. It includes the client's spans.
const (
	Dir       = result.TracesDir
	SpansFile = "spans.jsonl"
	IndexFile = "index.json"
)

// Index lists the kept traces of a run. It is the content of IndexFile.
type Index struct {
	// Sampled is the sampling rate that the scenario sets, 0 to 1.
	Sampled float64 `json:"sampled"`
	Counts
	// Exports is the number of export requests that the receiver accepted, and Refused the number that it refused.
	// Invalid is the number of spans without a valid ID.
	Exports int64 `json:"exports"`
	Refused int64 `json:"refused"`
	Invalid int64 `json:"invalid"`
	// Omitted is the number of kept traces that did not fit into SpansFile.
	Omitted int64   `json:"omitted"`
	Traces  []Trace `json:"traces"`
	// Names, Parts and Pods have the same meaning as in result.json.
	Names []result.SpanName  `json:"names"`
	Parts []result.SpanParts `json:"parts"`
	Pods  []result.PodLife   `json:"pods"`
}

// maxOnDisk is the maximum size of SpansFile in bytes.
const maxOnDisk = 64 << 20

// Write writes SpansFile and IndexFile into the directory Dir of a run. dir is the run's directory. It replaces each file
// atomically. It omits traces that would make SpansFile larger than 64 MiB, and counts them in the index as omitted.
func (x Index) Write(dir string, all []Trace) error {
	dir = filepath.Join(dir, Dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	x.Traces = []Trace{}
	err := atomicfile.WriteFunc(filepath.Join(dir, SpansFile), func(f io.Writer) error {
		w := bufio.NewWriter(f)
		size := 0
		var line bytes.Buffer
		for i := range all {
			t := &all[i]
			line.Reset()
			if err := WriteOTLP(&line, t.All()); err != nil {
				return err
			}
			if size+line.Len() > maxOnDisk {
				x.Omitted++
				continue
			}
			size += line.Len()
			if _, err := w.Write(line.Bytes()); err != nil {
				return err
			}
			x.Traces = append(x.Traces, *t)
		}
		return w.Flush()
	})
	if err != nil {
		return err
	}
	index, err := json.MarshalIndent(x, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, IndexFile), append(index, '\n'))
}

// Limits of IndexFile. A run writes about 10,000 objects at most.
const (
	longestIndex = 16 << 20 // maximum size in bytes
	maxIndexed   = 100_000  // maximum number of objects
)

// Read reads the kept traces of a run. dir is the run's directory. If the run has no IndexFile, Read returns an error that
// wraps fs.ErrNotExist.
func Read(dir string) (Index, []Trace, error) {
	var x Index
	data, err := userfile.Read(filepath.Join(dir, Dir, IndexFile), longestIndex)
	if err == nil {
		err = unmarshal(data, maxIndexed, &x)
	}
	if err != nil {
		return x, nil, fmt.Errorf("%s/%s: %w", Dir, IndexFile, err)
	}
	all := slices.Clone(x.Traces)
	of := map[TraceID]*Trace{}
	for i := range all {
		t := &all[i]
		for _, at := range []*int64{&t.Due, &t.Sent, &t.First, &t.Last} {
			*at = limitTime(*at)
		}
		if t.Trace == (TraceID{}) || t.ID == (ID{}) && t.Client == "" {
			return x, nil, fmt.Errorf("%s/%s: traces[%d]: traceId or spanId is not a valid ID", Dir, IndexFile, i)
		}
		of[t.Trace] = t
	}
	f, err := userfile.Open(filepath.Join(dir, Dir, SpansFile), maxOnDisk)
	if err != nil {
		return x, nil, fmt.Errorf("%s/%s: %v", Dir, SpansFile, err) // not Missing: the run has an index
	}
	defer f.Close()
	_, err = ReadOTLP(f, func(s Span) {
		if t := of[s.Trace]; t != nil && s.Process != Client && len(t.Spans) < maxSpansInTrace {
			s.Limit()
			t.Spans = append(t.Spans, s)
		}
	})
	if err != nil {
		err = fmt.Errorf("%s/%s: %w", Dir, SpansFile, err)
	}
	return x, all, err
}

// Missing reports whether the error of Read means that the run kept no traces.
func Missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
