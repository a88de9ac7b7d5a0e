package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
)

// MaxLine bounds an audit event; at level Metadata one has about a kilobyte.
const MaxLine = 1 << 20

// ReadLog summarises the audit log at path, rotated files beside it included, by the
// phase in which the API server received a request. Events of other users than user, or
// outside of all phases, are only counted, as are lines that are no event. The error is
// the context's, or that of a file that cannot be read.
//
// The log is read when the run is over: parsing it during the run would take CPU from
// what is being measured.
func ReadLog(ctx context.Context, path, user string, phases []result.Phase) (*Audit, error) {
	files, err := logFiles(path)
	if err != nil {
		return nil, err
	}
	s := newSummary(user, phases)
	for _, file := range files {
		if err := s.readFile(ctx, file); err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
	}
	a := s.audit()
	a.Files = len(files)
	return a, nil
}

// logFiles are the rotated files, the oldest first, then the current one. The
// API server names a rotated file by its time, so that the names sort.
func logFiles(path string) ([]string, error) {
	ext := filepath.Ext(path)
	prefix := strings.TrimSuffix(filepath.Base(path), ext) + "-"
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("find the audit log: %w", err)
	}
	var files []string
	for _, e := range entries {
		stamp, rotated := strings.CutPrefix(strings.TrimSuffix(e.Name(), ext), prefix)
		if _, err := time.Parse("2006-01-02T15-04-05.000", stamp); rotated && err == nil && filepath.Ext(e.Name()) == ext {
			files = append(files, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	slices.Sort(files)
	if _, err := os.Stat(path); err == nil {
		files = append(files, path)
	} else if !errors.Is(err, fs.ErrNotExist) || len(files) == 0 {
		return nil, fmt.Errorf("find the audit log: %w", err)
	}
	return files, nil
}

func (s *summary) readFile(ctx context.Context, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, MaxLine)
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line, err := r.ReadSlice('\n')
		switch {
		case err == nil:
			s.line(line)
		case errors.Is(err, bufio.ErrBufferFull):
			s.Malformed++
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = r.ReadSlice('\n')
			}
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
		case errors.Is(err, io.EOF):
			// A server that was killed leaves half a line.
			if len(bytes.TrimSpace(line)) > 0 {
				s.Torn++
			}
			return nil
		default:
			return err
		}
	}
}

// event holds the fields read from an audit event (audit.k8s.io/v1).
type event struct {
	Stage string `json:"stage"`
	Verb  string `json:"verb"`
	User  struct {
		Username string `json:"username"`
	} `json:"user"`
	ImpersonatedUser *struct {
		Username string `json:"username"`
	} `json:"impersonatedUser"`
	ObjectRef *struct {
		Resource    string `json:"resource"`
		APIGroup    string `json:"apiGroup"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	Received    time.Time         `json:"requestReceivedTimestamp"`
	Ended       time.Time         `json:"stageTimestamp"`
	Annotations map[string]string `json:"annotations"`
}

// layerPrefix begins the names of the API server's own timings
// (apiserver/pkg/endpoints/request/webhook_duration.go). It writes them for
// requests of more than 500 ms only (endpoints/filters/audit.go).
const layerPrefix = "apiserver.latency.k8s.io/"

// layers are the event's timings by layer; nil for a fast request.
func (e *event) layers() map[string]time.Duration {
	var all map[string]time.Duration
	for name, text := range e.Annotations {
		layer, ok := strings.CutPrefix(name, layerPrefix)
		d, err := time.ParseDuration(text)
		if !ok || err != nil {
			continue
		}
		if all == nil {
			all = map[string]time.Duration{}
		}
		all[layer] = d
	}
	return all
}

func (s *summary) line(line []byte) {
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return
	}
	var e event
	if err := json.Unmarshal(line, &e); err != nil || e.Received.IsZero() || e.Ended.IsZero() {
		s.Malformed++
		return
	}
	switch {
	case e.User.Username != s.user:
		s.Foreign++
	case e.Stage != "ResponseComplete" && e.Stage != "Panic" || e.ObjectRef == nil || e.ObjectRef.Resource == "":
		s.Other++
	default:
		s.add(&e)
	}
}
