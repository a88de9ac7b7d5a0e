package service

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/stormglass/stormglass/controlplane/control"
)

// Behaviour says how a service responds to requests. The zero value responds immediately.
type Behaviour struct {
	// Delay is the delay of each response. Jitter is the maximum random change of Delay, up or down. Seed is the seed
	// of the random changes.
	Delay  time.Duration `json:"delayNanoseconds,omitempty"`
	Jitter time.Duration `json:"jitterNanoseconds,omitempty"`
	Seed   int64         `json:"seed,omitempty"`
	// Fails makes the service respond to each request with an error, after the delay.
	Fails bool `json:"fails,omitempty"`
	// Throttle is the number of requests per second that the service accepts, with bursts of the same size. It refuses
	// further requests without delay. Zero means unlimited.
	Throttle float64 `json:"throttle,omitempty"`
}

// over combines the behaviour b of a fault with a service's own behaviour. It adds the delays. The rate limit is the
// limit of b, or the limit of `own` if b has none.
func (b Behaviour) over(own Behaviour) Behaviour {
	b.Delay += own.Delay
	b.Jitter += own.Jitter
	b.Throttle = cmp.Or(b.Throttle, own.Throttle)
	return b
}

// conduct applies a Behaviour, which can change at any time, to the requests of a service.
type conduct struct {
	own       Behaviour  // behaviour of the service without a fault
	mu        sync.Mutex // guards the fields below
	behaviour Behaviour
	random    *rand.Rand
	limiter   *rate.Limiter // rate limiter; nil means unlimited
	changed   chan struct{} // closed when the behaviour changes
}

func newConduct(own Behaviour) *conduct {
	c := &conduct{own: own}
	c.set(Behaviour{})
	return c
}

// set changes the behaviour to b, combined with the service's own behaviour.
func (c *conduct) set(b Behaviour) {
	b = b.over(c.own)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed != nil {
		close(c.changed)
	}
	if b.Throttle != c.behaviour.Throttle {
		c.limiter = nil
		if b.Throttle > 0 {
			c.limiter = rate.NewLimiter(rate.Limit(b.Throttle), int(math.Ceil(b.Throttle)))
		}
	}
	c.behaviour, c.random, c.changed = b, rand.New(rand.NewPCG(uint64(b.Seed), 0)), make(chan struct{})
}

// throttledError is the error of a request over the service's rate limit.
type throttledError struct {
	after time.Duration // time until the service accepts the next request
}

func (e *throttledError) Error() string {
	return fmt.Sprintf("too many requests: the next is accepted in %s", e.after.Round(time.Millisecond))
}

// admit returns a throttledError if the request exceeds the rate limit.
func (c *conduct) admit() error {
	c.mu.Lock()
	limiter := c.limiter
	c.mu.Unlock()
	if limiter == nil {
		return nil
	}
	r := limiter.Reserve()
	after := r.Delay()
	if after == 0 {
		return nil
	}
	r.Cancel()
	return &throttledError{after}
}

// wait waits for the delay, until the behaviour changes, or until the client disconnects. It returns an error if the
// service must fail or the client has disconnected.
func (c *conduct) wait(ctx context.Context) error {
	c.mu.Lock()
	delay, changed := control.Jittered(c.behaviour.Delay, c.behaviour.Jitter, c.random), c.changed
	c.mu.Unlock()
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.behaviour.Fails {
		return errFails
	}
	return nil
}

func (c *conduct) serve(w http.ResponseWriter, r *http.Request) {
	var b Behaviour
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&b); err != nil {
		http.Error(w, fmt.Sprintf("invalid behaviour: %v", err), http.StatusBadRequest)
		return
	}
	c.set(b)
	w.WriteHeader(http.StatusNoContent)
}
