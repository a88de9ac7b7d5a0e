package traffic

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// list asks for the load's objects as a consistent read, and returns the
// version of the list.
func (w *Watches) list(ctx context.Context) (uint64, error) {
	query := w.selector()
	status, answer, err := w.client.ask(ctx, http.MethodGet, w.client.url(w.path, query), "", nil)
	if err != nil {
		return 0, err
	}
	if !Outcome(status).Success() {
		return 0, statusError("list", w.load.Resource, status, answer)
	}
	rv, err := versionOf(answer)
	if err != nil {
		return 0, fmt.Errorf("list %s: %w", w.load.Resource, err)
	}
	return rv, nil
}

func (w *Watches) selector() url.Values {
	query := url.Values{}
	if w.objects != nil {
		query.Set("labelSelector", LoadLabel+"="+w.load.Name)
	}
	return query
}

// watchURL is a watch from a version, ended by the server after so long.
func (w *Watches) watchURL(rv uint64, timeout time.Duration) *url.URL {
	query := w.selector()
	query.Set("watch", "1")
	query.Set("allowWatchBookmarks", "true")
	query.Set("resourceVersion", strconv.FormatUint(rv, 10))
	query.Set("timeoutSeconds", strconv.Itoa(int(timeout.Seconds())))
	return w.client.url(w.path, query)
}

// versionOf reads the resourceVersion of an object or a list.
func versionOf(object []byte) (uint64, error) {
	var v version
	s := newObjectScanner(&v)
	if err := s.feed(object); err != nil {
		return 0, err
	}
	if v == 0 {
		return 0, errors.New("the answer has no resourceVersion")
	}
	return uint64(v), nil
}

type version uint64

func (v *version) take(e *event) { *v = version(e.rv) }
