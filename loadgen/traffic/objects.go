package traffic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stormglass/stormglass/loadgen/pace"
)

// Making the objects of a load is no part of what is measured and should not
// be a storm of its own.
const (
	setupRate    = 500 // per second
	setupWorkers = 16
)

// configMaps are the ConfigMaps that a load works on: NAME-0 to NAME-(n-1),
// with the labels of the target and LoadLabel.
type configMaps struct {
	client *client
	names  []string
	urls   []*url.URL // of each
	all    string     // path of the collection
	labels map[string]string
	body   payload
}

func newConfigMaps(c *client, t Target, load string, n int, size int64) (*configMaps, error) {
	if t.Namespace == "" {
		return nil, errors.New("no namespace for the load's ConfigMaps")
	}
	o := &configMaps{
		client: c,
		all:    "/api/v1/namespaces/" + url.PathEscape(t.Namespace) + "/configmaps",
		labels: maps.Clone(t.Labels),
		body:   newPayload(size, t.Seed),
	}
	if o.labels == nil {
		o.labels = map[string]string{}
	}
	o.labels[LoadLabel] = load
	for i := range n {
		name := fmt.Sprintf("%s-%d", load, i)
		o.names = append(o.names, name)
		o.urls = append(o.urls, c.url(o.all+"/"+name, nil))
	}
	return o, nil
}

// object is a ConfigMap as it is written. A new turn gives it another payload.
func (o *configMaps) object(name string, turn int64) []byte {
	type metadata struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	}
	// A struct of strings cannot fail to marshal.
	b, _ := json.Marshal(struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Metadata   metadata          `json:"metadata"`
		Data       map[string]string `json:"data"`
	}{"v1", "ConfigMap", metadata{name, o.labels}, map[string]string{"payload": string(o.body.turn(turn))}})
	return b
}

// prepare makes the objects, in parallel and at a bounded rate. Those that are
// there from a run before are overwritten.
func (o *configMaps) prepare(ctx context.Context) error {
	schedule, err := pace.New("constant", setupRate, 0)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var workers sync.WaitGroup
	start := time.Now()
	for range min(setupWorkers, len(o.names)) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(o.names)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				// The schedule is constant: a pure function, safe to share.
				if !pause(ctx, time.Until(start.Add(schedule.At(i)))) {
					return
				}
				if err := o.create(ctx, int(i)); err != nil {
					cancel(err)
				}
			}
		})
	}
	workers.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

func (o *configMaps) create(ctx context.Context, i int) error {
	body := o.object(o.names[i], 0)
	status, answer, err := o.client.ask(ctx, http.MethodPost, o.client.url(o.all, nil), jsonType, body)
	if err == nil && status == http.StatusConflict {
		status, answer, err = o.client.ask(ctx, http.MethodPut, o.urls[i], jsonType, body)
	}
	if err == nil && !Outcome(status).Success() {
		err = statusError("create", fmt.Sprintf("configmap %q", o.names[i]), status, answer)
	}
	return err
}

// payload is text of a fixed size that is another at every turn, as an
// application's data is: an update that changes nothing is not written to etcd.
type payload struct {
	text []byte // twice the size
	size int64
}

func newPayload(size, seed int64) payload {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	random := rand.New(rand.NewPCG(uint64(seed), 0x7061796c6f6164))
	text := make([]byte, 2*size)
	for i := range size {
		text[i] = letters[random.IntN(len(letters))]
		text[i+size] = text[i]
	}
	return payload{text, size}
}

// turn is the text rotated by n letters. It needs no escaping in JSON.
func (p payload) turn(n int64) []byte {
	if p.size == 0 {
		return nil
	}
	n %= p.size
	return p.text[n : n+p.size]
}
