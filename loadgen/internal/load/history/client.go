package history

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/history/check"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
)

type client struct {
	load   *Load
	number int
	conn   connection
	draw   *rand.Rand
	known  []uint64 // last known version of each register; 0 if not known
}

func newClient(l *Load, number int) *client {
	return &client{
		load: l, number: number, conn: connection{to: l.to, sent: l.sent}, known: make([]uint64, len(l.registers.names)),
		draw: rand.New(rand.NewPCG(uint64(l.seed), uint64(number))),
	}
}

// run handles the client's arrivals until ctx ends. If several arrivals become due during an operation, it handles only
// the last of them, after the operation.
func (c *client) run(ctx context.Context) {
	defer c.conn.close()
	clients := float64(c.load.config.Clients)
	gap := time.Duration(clients / c.load.config.Rate * float64(time.Second))
	start, next := time.Now(), time.Duration(float64(gap)*float64(c.number)/clients)
	for {
		if _, due := c.load.pause.Await(ctx, start, next); !due || !c.arrive(context.WithoutCancel(ctx)) {
			return
		}
		next += gap
		if late := c.load.pause.State().Elapsed(start, time.Now()) - next; late > 0 {
			c.load.record.skipped.Add(int64(late / gap))
			next += late / gap * gap
		}
	}
}

// arrive performs the operations of one arrival. It returns false if the history is full.
func (c *client) arrive(ctx context.Context) bool {
	i := c.draw.IntN(len(c.known))
	blind := c.draw.Float64() < plan.HistoryBlind && c.known[i] > 0
	switch x := c.draw.Float64(); {
	case x < plan.HistoryWrites:
		return (blind || c.read(ctx, i, check.Read)) && c.write(ctx, i)
	case x < plan.HistoryWrites+plan.HistoryReads:
		return c.read(ctx, i, check.Read)
	default:
		return c.read(ctx, i, check.CachedRead)
	}
}

// read reads a register. It returns false if the history is full.
func (c *client) read(ctx context.Context, i int, kind check.Kind) bool {
	return c.do(ctx, check.Operation{Register: i, Kind: kind})
}

// write updates a register and sends the resourceVersion that the client last saw. Without one, write does nothing. It
// returns false if the history is full.
func (c *client) write(ctx context.Context, i int) bool {
	if c.known[i] == 0 {
		return true
	}
	return c.do(ctx, check.Operation{Register: i, Kind: check.Write, Expected: c.known[i], Value: c.load.record.value.Add(1)})
}

// do performs one operation and counts it towards MaxOperations. It returns false if the history is full.
func (c *client) do(ctx context.Context, o check.Operation) bool {
	if !c.load.record.begin(1) {
		return false
	}
	c.exchange(ctx, o)
	return true
}

// exchange performs one operation with one request and records the outcome.
func (c *client) exchange(ctx context.Context, o check.Operation) check.Operation {
	l := c.load
	ctx, cancel := context.WithTimeout(ctx, l.config.Timeout)
	defer cancel()
	o.Client = c.number
	method, path, body := http.MethodGet, l.registers.path(o.Register), []byte(nil)
	switch o.Kind {
	case check.Write:
		method, body = http.MethodPut, l.registers.body(o.Register, o.Value, o.Expected)
	case check.CachedRead:
		path += "?resourceVersion=0"
	}
	o.Call = l.record.now()
	answer, err := c.conn.ask(ctx, method, path, body)
	o.Return = l.record.now()
	if o.Outcome = outcome(o.Kind, answer, err); o.Outcome == check.OK && answer.Status != http.StatusNotFound {
		readAnswer(&o, answer.Body)
	}
	if !o.Final {
		l.sample(answer, err, o.Outcome == check.OK || o.Outcome == check.Conflict, o.Return-o.Call)
	}
	switch {
	case o.Outcome == check.OK && o.Kind != check.CachedRead:
		c.known[o.Register] = o.Version
	case o.Kind == check.Write && o.Outcome != check.Refused:
		c.known[o.Register] = 0 // the version may have changed
	}
	if o.Outcome == check.Unknown {
		c.conn.close() // continue on a new connection, as another process in Jepsen's terms
	}
	l.record.end(o)
	return o
}

// readAnswer reads the state of the register from the body of a 2xx response. If the body cannot be read, or does not
// contain the value that a write has sent, the outcome becomes Unknown.
func readAnswer(o *check.Operation, body []byte) {
	var is corev1.ConfigMap
	if err := json.Unmarshal(body, &is); err != nil {
		o.Outcome = check.Unknown
		return
	}
	version, err := versionOf(&is)
	if err != nil || o.Kind == check.Write && valueOf(&is) != o.Value {
		o.Outcome = check.Unknown
		return
	}
	o.Version, o.Value = version, valueOf(&is)
}

// sample adds a request to the samples. `took` is the time since the request was sent. `good` is true for 2xx responses
// and for conflicts, which clients cause on purpose.
func (l *Load) sample(answer *h2conn.Response, err error, good bool, took time.Duration) {
	own := min(l.stalls.Late(time.Now()), took)
	switch {
	case good:
		l.requests.Succeeded(took, own)
	case answer == nil:
		l.requests.Failed(load.OutcomeOf(err).String(), took, own)
	case load.Outcome(answer.Status).Success():
		l.requests.Failed(load.Malformed.String(), took, own)
	default:
		l.requests.Failed(strconv.Itoa(answer.Status), took, own)
	}
}
