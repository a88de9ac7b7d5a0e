package workload

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/listwatch"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"
)

const maxRetry = 5 * time.Second

// follow lists and watches the objects of kind k until ctx ends.
func (w *Workload) follow(ctx context.Context, k kind, path string) error {
	r := &listwatch.Reflector{
		Client: w.rest, Path: path, Selector: w.selector, ListType: protobuf.ContentType, WatchType: protobuf.WatchType,
		Backoff: w.backoff(), Refused: refused,
		Event:       func(event []byte, at time.Time) (string, error) { return w.event(k, event, at) },
		Relisted:    func() { w.change(func(t *tracker) { t.phase.relists++ }) },
		Reconnected: func() { w.change(func(t *tracker) { t.phase.reconnects++ }) },
	}
	r.List = func(ctx context.Context) (string, error) { return w.list(ctx, k, r) }
	if err := r.Run(ctx); err != nil {
		return fmt.Errorf("list %s: %w", k, err)
	}
	return nil
}

func (w *Workload) backoff() apiclient.Backoff {
	return apiclient.Backoff{First: w.options.Retry, Most: maxRetry}
}

func refused(err error) bool {
	return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
}

// list lists all objects of a kind, updates the tracker, and returns the list's resourceVersion.
func (w *Workload) list(ctx context.Context, k kind, r *listwatch.Reflector) (string, error) {
	var all []object
	version, err := r.Pages(ctx, func(page []byte) (version, token string, err error) {
		meta, err := protobuf.List(page, func(item []byte) error {
			o, err := decode(k, item)
			all = append(all, o)
			return err
		})
		return meta.ResourceVersion, meta.Continue, err
	})
	if err != nil {
		return "", err
	}
	at := time.Now()
	w.change(func(t *tracker) {
		t.replace(k, all, at)
		w.synced[k] = true
	})
	return version, nil
}

// event processes an event of a watch and returns its resourceVersion. Bookmarks have one too.
func (w *Workload) event(k kind, frame []byte, at time.Time) (version string, err error) {
	event, o, err := decodeEvent(k, frame)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: %w", listwatch.ErrMalformed, err)
	case event == "ERROR":
		return "", &listwatch.Refusal{Status: int(o.code)}
	case event == "DELETED":
		w.change(func(t *tracker) { t.gone(o, at) })
	case event != "BOOKMARK":
		w.change(func(t *tracker) { t.saw(o, at, false) })
	}
	return o.resourceVersion, nil
}

// Retry calls the function ask repeatedly while its error may be transient, for at most Options.Patience. ask must be
// idempotent.
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

// patience returns how long Retry repeats requests that fail with err; 0 means no retry.
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
