package kubeletapi

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func serveLog(w http.ResponseWriter, r *http.Request, n Node) {
	options, refused := logOptions(r.URL.Query())
	if refused != nil {
		http.Error(w, fmt.Sprintf(`{"message": %q}`, refused.text), refused.code)
		return
	}
	pod, container, found := find(w, r, n)
	if !found {
		return
	}
	out := &flushed{w: w, left: -1}
	if options.LimitBytes != nil {
		out.left = *options.LimitBytes
	}
	if options.Follow {
		out.Flush() // send the headers now: the next line of the log may come much later
	}
	if *options.Stream == corev1.LogStreamStderr { // simulated containers write only to standard output
		return
	}
	if err := n.Log(r.Context(), pod, container, options, out); err != nil && !out.begun && r.Context().Err() == nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// refusal is the error response to an invalid query.
type refusal struct {
	code int
	text string
}

// logOptions returns the options in the query of a request for a log. If the query is not valid, it returns a refusal.
func logOptions(q url.Values) (*corev1.PodLogOptions, *refusal) {
	if tail := q.Get("tail"); tail != "" && tail != "all" { // old clients send tail instead of tailLines
		q.Set("tailLines", tail)
	}
	o := &corev1.PodLogOptions{Stream: new(corev1.LogStreamAll)}
	var refused *refusal
	invalid := func(format string, args ...any) {
		refused = &refusal{http.StatusUnprocessableEntity, "Invalid request: " + fmt.Sprintf(format, args...)}
	}
	parse := func(name string, read func(string) error) {
		text := q.Get(name)
		if text == "" || refused != nil {
			return
		}
		if err := read(text); err != nil {
			refused = &refusal{http.StatusBadRequest, fmt.Sprintf("Unable to decode query: %s=%s: %v", name, text, err)}
		}
	}
	flag := func(name string, into *bool) {
		parse(name, func(text string) (err error) {
			*into, err = strconv.ParseBool(text)
			return err
		})
	}
	count := func(name string, into **int64, least int64) {
		parse(name, func(text string) error {
			n, err := strconv.ParseInt(text, 10, 64)
			if err == nil && n < least {
				invalid("%s=%d: must be at least %d", name, n, least)
			}
			*into = &n
			return err
		})
	}
	flag("follow", &o.Follow)
	flag("previous", &o.Previous)
	flag("timestamps", &o.Timestamps)
	count("tailLines", &o.TailLines, 0)
	count("limitBytes", &o.LimitBytes, 1)
	count("sinceSeconds", &o.SinceSeconds, 1)
	parse("sinceTime", func(text string) error {
		at, err := time.Parse(time.RFC3339, text)
		o.SinceTime = &metav1.Time{Time: at}
		return err
	})
	parse("stream", func(text string) error {
		*o.Stream = text
		if !slices.Contains([]string{corev1.LogStreamAll, corev1.LogStreamStdout, corev1.LogStreamStderr}, text) {
			invalid("stream=%s: All, Stdout or Stderr", text)
		}
		return nil
	})
	if refused == nil && o.SinceTime != nil && o.SinceSeconds != nil {
		invalid("at most one of sinceTime or sinceSeconds may be specified")
	}
	return o, refused
}

// flushed writes to a client and flushes after each write. `left` is the remaining number of bytes to write; a negative
// number means unlimited.
type flushed struct {
	w     http.ResponseWriter
	left  int64
	begun bool
}

var errLimit = fmt.Errorf("the byte limit is reached")

func (f *flushed) Write(p []byte) (int, error) {
	cut := f.left >= 0 && int64(len(p)) > f.left
	if cut {
		p = p[:f.left]
	}
	f.begun = true
	n, err := f.w.Write(p)
	f.Flush()
	if f.left >= 0 {
		f.left -= int64(n)
		if err == nil && (cut || f.left == 0) {
			err = errLimit
		}
	}
	return n, err
}

func (f *flushed) Flush() { _ = http.NewResponseController(f.w).Flush() }
