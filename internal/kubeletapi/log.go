package kubeletapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func serveLog(w http.ResponseWriter, r *http.Request, n Node) {
	options, err := logOptions(r.URL.Query())
	if err != nil {
		http.Error(w, fmt.Sprintf(`{"message": %q}`, "Invalid request: "+err.Error()), http.StatusUnprocessableEntity)
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
		out.Flush() // the headers: the log may be silent for long
	}
	if err := n.Log(r.Context(), pod, container, options, out); err != nil && !out.begun && r.Context().Err() == nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// logOptions reads the query of a request for a log.
func logOptions(q url.Values) (*corev1.PodLogOptions, error) {
	o := &corev1.PodLogOptions{}
	var failed error
	parse := func(name string, read func(string) error) {
		if text := q.Get(name); text != "" && failed == nil {
			if err := read(text); err != nil {
				failed = fmt.Errorf("%s=%s: %w", name, text, err)
			}
		}
	}
	flag := func(into *bool) func(string) error {
		return func(text string) (err error) {
			*into, err = strconv.ParseBool(text)
			return err
		}
	}
	count := func(into **int64, least int64) func(string) error {
		return func(text string) error {
			n, err := strconv.ParseInt(text, 10, 64)
			if err == nil && n < least {
				err = fmt.Errorf("must be at least %d", least)
			}
			*into = &n
			return err
		}
	}
	parse("follow", flag(&o.Follow))
	parse("previous", flag(&o.Previous))
	parse("timestamps", flag(&o.Timestamps))
	parse("tailLines", count(&o.TailLines, 0))
	parse("limitBytes", count(&o.LimitBytes, 1))
	parse("sinceSeconds", count(&o.SinceSeconds, 1))
	parse("sinceTime", func(text string) error {
		at, err := time.Parse(time.RFC3339, text)
		o.SinceTime = &metav1.Time{Time: at}
		return err
	})
	if failed == nil && o.SinceTime != nil && o.SinceSeconds != nil {
		failed = fmt.Errorf("at most one of sinceTime or sinceSeconds may be specified")
	}
	return o, failed
}

// flushed sends on what is written at once, to a limit of bytes; below 0 there is none.
type flushed struct {
	w     http.ResponseWriter
	left  int64
	begun bool
}

var errLimit = fmt.Errorf("the limit of bytes is reached")

func (f *flushed) Write(p []byte) (int, error) {
	cut := f.left >= 0 && int64(len(p)) > f.left
	if cut {
		p = p[:f.left]
	}
	f.begun = true
	n, err := f.w.Write(p)
	if f.left > 0 {
		f.left -= int64(n)
	}
	f.Flush()
	if err == nil && cut {
		err = errLimit
	}
	return n, err
}

func (f *flushed) Flush() { _ = http.NewResponseController(f.w).Flush() }
