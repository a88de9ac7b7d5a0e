package workload

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"
)

const (
	// pageSize bounds the memory of a list; it is kubectl's and client-go's.
	pageSize = "500"
	maxRetry = 5 * time.Second
)

// errExpired: the server no longer has the events since our resourceVersion.
var errExpired = errors.New("resourceVersion expired")

// follow lists and watches one kind until ctx ends.
func (w *Workload) follow(ctx context.Context, k kind, path string) error {
	pause := w.retry()
	for first := true; ; {
		rv, err := w.list(ctx, k, path)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && first && refused(err):
			return fmt.Errorf("list %s: %w", k, err)
		case err != nil:
			pause.Pause(ctx)
			continue
		}
		if !first {
			w.change(func(t *tracker) { t.phase.relists++ })
		}
		first = false
		for {
			next, err := w.watch(ctx, k, path, rv)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if errors.Is(err, errExpired) {
				break
			}
			w.change(func(t *tracker) { t.phase.reconnects++ })
			if next != rv {
				pause.Reset()
			}
			rv = next
			pause.Pause(ctx)
		}
	}
}

// retry waits a little longer each time.
func (w *Workload) retry() apiclient.Retry {
	return apiclient.Retry{Backoff: apiclient.Backoff{First: w.options.Retry, Most: maxRetry}}
}

func refused(err error) bool {
	return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
}

// list takes in all objects of a kind and returns the resourceVersion that a
// watch goes on from.
func (w *Workload) list(ctx context.Context, k kind, path string) (string, error) {
	var all []object
	for continues := ""; ; {
		data, err := body(w.rest.Get().AbsPath(path).
			Param("labelSelector", w.selector).Param("limit", pageSize).Param("continue", continues).
			SetHeader("Accept", protobuf.ContentType).Do(ctx))
		if err != nil {
			return "", err
		}
		p, err := decodeList(k, data)
		if err != nil {
			return "", err
		}
		all = append(all, p.objects...)
		if continues = p.continues; continues == "" {
			at := time.Now()
			w.change(func(t *tracker) {
				t.replace(k, all, at)
				w.synced[k] = true
			})
			return p.resourceVersion, nil
		}
	}
}

// body is the answer to a request. Result.Raw alone would say "unknown" where
// the server said why it refused.
func body(r rest.Result) ([]byte, error) {
	if err := r.Error(); err != nil {
		return nil, err
	}
	return r.Raw()
}

// watch takes in events from a resourceVersion on, until the stream ends. It
// returns the version it got to; errExpired means that a list is due.
func (w *Workload) watch(ctx context.Context, k kind, path, rv string) (string, error) {
	stream, err := w.rest.Get().AbsPath(path).
		Param("labelSelector", w.selector).Param("watch", "true").
		Param("allowWatchBookmarks", "true").Param("resourceVersion", rv).
		SetHeader("Accept", protobuf.WatchType).Stream(ctx)
	if err != nil {
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			err = errExpired
		}
		return rv, err
	}
	defer stream.Close()
	in := bufio.NewReaderSize(stream, 64<<10)
	var buf []byte
	for {
		if buf, err = readFrame(in, buf); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil // the server ends every watch once in a while
			}
			return rv, err
		}
		at := time.Now()
		event, o, err := decodeEvent(k, buf)
		switch {
		case err != nil:
			return rv, fmt.Errorf("watch %s: %w", k, err)
		case event == "ERROR" && o.code == http.StatusGone:
			return rv, errExpired
		case event == "ERROR":
			return rv, fmt.Errorf("watch %s: %s (%d)", k, o.message, o.code)
		case event == "ADDED", event == "MODIFIED":
			w.change(func(t *tracker) { t.saw(o, at, false) })
		case event == "DELETED":
			w.change(func(t *tracker) { t.gone(o, at) })
		}
		rv = o.resourceVersion // of a bookmark too
	}
}
