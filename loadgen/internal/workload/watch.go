package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/listwatch"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"
)

const (
	// pageSize is the maximum number of objects per page of a list. It limits memory use; kubectl and client-go use the
	// same size.
	pageSize = "500"
	maxRetry = 5 * time.Second
)

// follow lists and watches the objects of kind k until ctx ends.
func (w *Workload) follow(ctx context.Context, k kind, path string) error {
	m := listwatch.Machine{Backoff: w.backoff(), State: listwatch.FreshList, Next: listwatch.FreshList}
	version := ""
	for first := true; ; {
		var end listwatch.End
		asked := m.Next
		if asked == listwatch.Watch {
			version, end = w.watch(ctx, k, path, version)
		} else {
			version, end.Err = w.list(ctx, k, path)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		verdict, wait := m.Ended(end, 0)
		switch {
		case first && refused(end.Err):
			return fmt.Errorf("list %s: %w", k, end.Err)
		case verdict == listwatch.Listed && first:
			first = false
		case verdict == listwatch.Listed:
			w.change(func(t *tracker) { t.phase.relists++ })
		case asked == listwatch.Watch && verdict != listwatch.Expired:
			w.change(func(t *tracker) { t.phase.reconnects++ })
		}
		apiclient.Pause(ctx, wait)
	}
}

func (w *Workload) backoff() apiclient.Backoff {
	return apiclient.Backoff{First: w.options.Retry, Most: maxRetry}
}

func refused(err error) bool {
	return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
}

// list lists all objects of a kind, updates the tracker, and returns the list's resourceVersion.
func (w *Workload) list(ctx context.Context, k kind, path string) (string, error) {
	var all []object
	for continues := ""; ; {
		data, err := body(w.rest.Get().AbsPath(path).
			Param("labelSelector", w.selector).Param("limit", pageSize).Param("continue", continues).
			SetHeader("Accept", protobuf.ContentType).Do(ctx))
		if err != nil {
			return "", err
		}
		meta, err := protobuf.List(data, func(item []byte) error {
			o, err := decode(k, item)
			all = append(all, o)
			return err
		})
		if err != nil {
			return "", err
		}
		if continues = meta.Continue; continues == "" {
			at := time.Now()
			w.change(func(t *tracker) {
				t.replace(k, all, at)
				w.synced[k] = true
			})
			return meta.ResourceVersion, nil
		}
	}
}

// body returns the body of an answer, or the error in the answer. Result.Raw alone would lose the reason of a refusal.
func body(r rest.Result) ([]byte, error) {
	if err := r.Error(); err != nil {
		return nil, err
	}
	return r.Raw()
}

// watch processes the events after a resourceVersion until the stream ends. It returns the last resourceVersion.
func (w *Workload) watch(ctx context.Context, k kind, path, version string) (string, listwatch.End) {
	stream, err := w.rest.Get().AbsPath(path).
		Param("labelSelector", w.selector).Param("watch", "true").
		Param("allowWatchBookmarks", "true").Param("resourceVersion", version).
		SetHeader("Accept", protobuf.WatchType).Stream(ctx)
	if err != nil {
		return version, listwatch.End{Err: err}
	}
	defer stream.Close()
	end, began := listwatch.End{Up: true}, time.Now()
	var frames listwatch.Frames
	buf := make([]byte, 64<<10)
	for end.Err == nil {
		n, err := stream.Read(buf)
		at := time.Now()
		end.Err = frames.Feed(buf[:n], func(frame []byte) error {
			event, o, err := decodeEvent(k, frame)
			switch {
			case err != nil:
				return fmt.Errorf("%w: %w", listwatch.ErrMalformed, err)
			case event == "ERROR":
				return &listwatch.Refusal{Status: int(o.code)}
			case event == "DELETED":
				w.change(func(t *tracker) { t.gone(o, at) })
			case event != "BOOKMARK":
				w.change(func(t *tracker) { t.saw(o, at, false) })
			}
			end.Events++
			version = o.resourceVersion // bookmarks count too
			return nil
		})
		if errors.Is(err, io.EOF) {
			break // normal: the server ends every watch after some time
		}
		end.Err = cmp.Or(end.Err, err)
	}
	end.Lived = time.Since(began)
	return version, end
}

// Retry calls ask repeatedly while the error of ask may be transient, for at most Options.Patience. ask must be idempotent.
func (w *Workload) Retry(ctx context.Context, ask func() error) error {
	began := time.Now()
	for failures := 1; ; failures++ {
		err := ask()
		if err == nil || time.Since(began) >= w.patience(err) || ctx.Err() != nil {
			return err
		}
		apiclient.Pause(ctx, w.backoff().Wait(failures, 0))
	}
}

// patience returns for how long requests that fail with err are retried; 0 means no retry.
func (w *Workload) patience(err error) time.Duration {
	switch {
	case transient(err):
		return w.options.Patience
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		return min(w.options.Patience, apiclient.RefusedBudget)
	}
	return 0
}

// transient reports whether a retry may succeed after err: a network error, status 429 or status 5xx.
func transient(err error) bool {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		code := status.Status().Code
		return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
	}
	return errors.As(err, new(net.Error))
}

func decodeEvent(k kind, frame []byte) (eventType string, o object, err error) {
	eventType, msg, err := protobuf.Event(frame)
	if err != nil {
		return "", object{}, err
	}
	if eventType == "ERROR" {
		k = statusKind
	}
	o, err = decode(k, msg)
	return eventType, o, err
}
