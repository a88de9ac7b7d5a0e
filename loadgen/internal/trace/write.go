package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// Writer writes a trace file. The file gets its final name only when it is complete.
type Writer struct {
	path    string
	header  Header
	file    *os.File
	zip     *gzip.Writer
	text    *bufio.Writer
	line    bytes.Buffer
	json    *json.Encoder
	written int64
	last    Micros
	err     error
}

// Create creates a trace file. h.Requests must be the number of requests that will be written. Create sets h.Trace.
func Create(path string, h Header) (*Writer, error) {
	h.Trace = Version
	if err := h.Check(); err != nil {
		return nil, fmt.Errorf("write trace %s: %w", path, err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // 0600
	if err != nil {
		return nil, fmt.Errorf("write trace: %w", err)
	}
	w := &Writer{path: path, header: h, file: f}
	var to io.Writer = f
	if compressed(path) {
		w.zip = gzip.NewWriter(f)
		to = w.zip
	}
	w.text = bufio.NewWriterSize(to, 64<<10)
	w.json = json.NewEncoder(&w.line)
	w.json.SetEscapeHTML(false)
	w.put(&h)
	return w, w.closeOn(w.err)
}

// Write writes a request. It returns an error if the request is invalid or cannot be written. After an error, all
// further calls return an error.
func (w *Writer) Write(r *Request) error {
	if w.err == nil {
		if err := r.Check(&w.header, w.last); err != nil {
			w.err = fmt.Errorf("write trace %s: request %d: %w", w.path, w.written+1, err)
		}
	}
	if w.err == nil {
		w.put(r)
		w.written++
		w.last = r.At
	}
	return w.err
}

func (w *Writer) put(value any) {
	w.line.Reset()
	if w.err = w.json.Encode(value); w.err == nil {
		_, w.err = w.text.Write(w.line.Bytes())
	}
	if w.err != nil {
		w.err = fmt.Errorf("write trace %s: %w", w.path, w.err)
	}
}

// Close completes the trace and gives the file its final name. If that fails or an earlier call failed, it removes the
// file.
func (w *Writer) Close() error {
	if w.err == nil && w.written != w.header.Requests {
		w.err = fmt.Errorf("write trace %s: %d requests were written, but the header says %d", w.path, w.written, w.header.Requests)
	}
	if w.err == nil {
		w.err = w.text.Flush()
	}
	if w.err == nil && w.zip != nil {
		w.err = w.zip.Close()
	}
	if w.err == nil {
		w.err = errors.Join(w.file.Chmod(0o644), w.file.Sync())
	}
	if w.err != nil {
		return w.closeOn(w.err)
	}
	if err := w.file.Close(); err != nil {
		return w.closeOn(err)
	}
	if err := os.Rename(w.file.Name(), w.path); err != nil {
		return w.closeOn(err)
	}
	return nil
}

// Discard removes the unfinished file.
func (w *Writer) Discard() { _ = w.closeOn(errors.New("discarded")) }

// closeOn returns err. If err is not nil, it also closes and removes the temporary file.
func (w *Writer) closeOn(err error) error {
	if err != nil {
		w.file.Close()
		os.Remove(w.file.Name())
	}
	return err
}

func compressed(path string) bool { return strings.HasSuffix(path, ".gz") }
