package recording

import (
	"errors"
	"net"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// tellAfter is how long no watch may reach the cluster before the user is told.
const tellAfter = 3 * time.Second

// outage tells the user when the cluster can no longer be reached and when it answers again. In between, the watches try
// again once a second.
type outage struct {
	tell func(format string, args ...any)

	mu    sync.Mutex
	since time.Time     // when the cluster became unreachable; zero while it answers
	told  bool          // whether the user was told
	total time.Duration // length of the earlier outages that the user was told
}

// saw records the attempt to open a watch. why is nil if the cluster has answered.
func (o *outage) saw(now time.Time, why error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if why == nil {
		if o.told {
			away := now.Sub(o.since)
			o.total += away
			o.tell("the cluster answers again, after %s", away.Round(time.Second))
		}
		o.since, o.told = time.Time{}, false
		return
	}
	if o.since.IsZero() {
		o.since = now
	}
	if !o.told && now.Sub(o.since) >= tellAfter {
		o.told = true
		o.tell("the cluster cannot be reached: %v; the recording waits until it answers again", why)
	}
}

// length returns the length of all outages that the user was told.
func (o *outage) length(now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.told {
		return o.total + now.Sub(o.since)
	}
	return o.total
}

// unreachable returns why a watch could not reach the cluster, or nil if the cluster has answered. Instead of some
// errors of connections, client-go returns a watch that has ended.
func unreachable(w watch.Interface, err error) error {
	var op *net.OpError
	switch {
	case err == nil && reflect.TypeOf(w) == reflect.TypeOf(watch.NewEmptyWatch()):
		return errors.New("connections end without an answer")
	case err == nil, errors.As(err, new(apierrors.APIStatus)):
		return nil
	case errors.As(err, &op): // without the URL
		return op
	}
	return err
}
