package capture

import (
	"errors"
	"net"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// tellAfter is the minimum length of an outage that the user sees.
const tellAfter = 3 * time.Second

// outage tells the user when the cluster is no longer reachable and when it responds again. Meanwhile, the watches
// retry once per second.
type outage struct {
	tell func(format string, args ...any)

	mu    sync.Mutex
	since time.Time     // when the cluster became unreachable; zero while it responds
	told  bool          // whether the user saw a message about the current outage
	total time.Duration // total length of earlier reported outages
}

// saw records the outcome of opening a watch. why is nil if the cluster responded.
func (o *outage) saw(now time.Time, why error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if why == nil {
		if o.told {
			away := now.Sub(o.since)
			o.total += away
			o.tell("the cluster responds again, after %s", away.Round(time.Second))
		}
		o.since, o.told = time.Time{}, false
		return
	}
	if o.since.IsZero() {
		o.since = now
	}
	if !o.told && now.Sub(o.since) >= tellAfter {
		o.told = true
		o.tell("the cluster cannot be reached: %v; the recording waits until the cluster responds again", why)
	}
}

// length returns the total length of all reported outages.
func (o *outage) length(now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.told {
		return o.total + now.Sub(o.since)
	}
	return o.total
}

// unreachable returns the reason why a watch could not reach the cluster, or nil if the cluster responded. For some
// connection errors, client-go returns a watch that has ended instead of an error.
func unreachable(w watch.Interface, err error) error {
	var op *net.OpError
	switch {
	case err == nil && reflect.TypeOf(w) == reflect.TypeOf(watch.NewEmptyWatch()):
		return errors.New("connections end without a response")
	case err == nil, errors.As(err, new(apierrors.APIStatus)):
		return nil
	case errors.As(err, &op): // the OpError does not contain the URL
		return op
	}
	return err
}
