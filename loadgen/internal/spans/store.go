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
	// Exports, Refused and Invalid: export requests that the receiver accepted and refused, and spans without a valid ID
	Exports int64 `json:"exports"`
	Refused int64 `json:"refused"`
	Invalid int64 `json:"invalid"`
	// Omitted: kept traces that did not fit into SpansFile
	Omitted int64        `json:"omitted"`
	Traces  []IndexEntry `json:"traces"`
	// Names, Parts and Pods: as in result.json
	Names []result.SpanName  `json:"names"`
	Parts []result.SpanParts `json:"parts"`
	Pods  []result.PodLife   `json:"pods"`
}

// IndexEntry is a kept trace, without its spans.
type IndexEntry struct {
	Trace string `json:"traceId"`
	Span  string `json:"spanId"`
	Load  string `json:"load,omitempty"`
	// Client: program that sent the request, if no load did
	Client string `json:"client,omitempty"`
	Phase  string `json:"phase"`
	// Verb and Resource: as in the results of the load
	Verb     string `json:"verb"`
	Resource string `json:"resource"`
	// Due, Sent, First, Last: see Request, in nanoseconds since 1970
	Due     int64    `json:"dueUnixNano"`
	Sent    int64    `json:"sentUnixNano"`
	First   int64    `json:"firstByteUnixNano,omitempty"`
	Last    int64    `json:"lastByteUnixNano"`
	Status  int      `json:"status,omitempty"`
	Failure string   `json:"failure,omitempty"`
	Why     []string `json:"why"`
	Lost    int      `json:"lostSpans,omitempty"`
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
	x.Traces = []IndexEntry{}
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
			x.Traces = append(x.Traces, IndexEntry{
				Trace: t.Trace.String(), Span: t.ID.String(), Load: t.Load, Client: t.Client, Phase: t.Phase, Verb: t.Verb, Resource: t.Resource,
				Due: t.Due, Sent: t.Sent, First: t.First, Last: t.Last, Status: t.Status, Failure: t.Failure, Why: t.Why, Lost: t.Lost,
			})
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
	longestIndex = 16 << 20 // bytes
	maxIndexed   = 100_000  // objects
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
	all := make([]Trace, len(x.Traces))
	of := map[TraceID]*Trace{}
	for i, e := range x.Traces {
		t := &all[i]
		t.Request = Request{Load: e.Load, Client: e.Client, Phase: e.Phase, Verb: e.Verb, Resource: e.Resource, Due: limitTime(e.Due), Sent: limitTime(e.Sent), First: limitTime(e.First), Last: limitTime(e.Last), Status: e.Status, Failure: e.Failure}
		t.Why, t.Lost = e.Why, e.Lost
		if !setHex(t.Trace[:], e.Trace) || !setHex(t.ID[:], e.Span) && e.Client == "" {
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
