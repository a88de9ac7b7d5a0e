package recording

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/stormglass/stormglass/internal/atomicfile"
)

// Write writes a recording file. It calls requests, which must call write for each request. h.Requests must be the
// number of requests. Write sets h.Format. If a request is invalid or another error occurs, Write leaves no file.
func Write(path string, h Header, requests func(write func(*Request) error) error) error {
	h.Format = Version
	err := h.Check()
	if err == nil {
		err = atomicfile.PublishFunc(path, func(to io.Writer) error {
			if !strings.HasSuffix(path, ".gz") {
				return writeLines(to, &h, requests)
			}
			zip := gzip.NewWriter(to)
			if err := writeLines(zip, &h, requests); err != nil {
				return err
			}
			return zip.Close()
		})
	}
	if err != nil {
		return fmt.Errorf("write recording %s: %w", path, err)
	}
	return nil
}

func writeLines(to io.Writer, h *Header, requests func(write func(*Request) error) error) error {
	text := bufio.NewWriterSize(to, 64<<10)
	lines := json.NewEncoder(text)
	lines.SetEscapeHTML(false)
	if err := lines.Encode(h); err != nil {
		return err
	}
	written, last := int64(0), Micros(0)
	err := requests(func(r *Request) error {
		written++
		if err := r.Check(h, last); err != nil {
			return fmt.Errorf("request %d: %w", written, err)
		}
		last = r.At
		return lines.Encode(r)
	})
	if err == nil && written != h.Requests {
		err = fmt.Errorf("%d requests were written, but the header says %d", written, h.Requests)
	}
	if err != nil {
		return err
	}
	return text.Flush()
}
