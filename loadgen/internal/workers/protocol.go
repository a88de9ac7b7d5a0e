package workers

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/node"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/result"
)

// protocolVersion must be raised with every change of the messages.
const protocolVersion = 2

const (
	// largestHello bounds the bytes read from a peer that has not shown the token.
	largestHello = 16 << 10
	// largestOfWorker bounds the messages of a worker: histograms. JSON takes several times as much memory.
	largestOfWorker = 64 << 20
	// largestMessage bounds the messages of the coordinator: a scenario with its traces.
	largestMessage = 512 << 20
	// longestShown bounds the bytes that are shown of a peer's text.
	longestShown = 300
	// A message is sent in pieces, each within a time limit.
	piece       = 64 << 10
	writeWithin = 10 * time.Second
)

// message has one field set, or none as a sign of life.
type message struct {
	Hello   *hello   `json:"hello,omitempty"`
	Refused string   `json:"refused,omitempty"` // why the coordinator does not take the worker
	Welcome *welcome `json:"welcome,omitempty"`
	Clock   *clock   `json:"clock,omitempty"`
	Token   string   `json:"token,omitempty"` // of the load's identity, renewed
	Call    *call    `json:"call,omitempty"`
	Reply   *reply   `json:"reply,omitempty"` // with ID 0: the worker has made its share, or why not

	Slot   *samples.Slot        `json:"slot,omitempty"`
	Live   map[string]load.Live `json:"live,omitempty"`   // of loads, once a second
	Opened string               `json:"opened,omitempty"` // a load whose watches are all open
	Over   string               `json:"over,omitempty"`   // a load without further arrivals
	Acks   []load.Ack           `json:"acks,omitempty"`   // by the coordinator's clock

	Nodes      *node.Live        `json:"nodes,omitempty"`      // of the worker's nodes, once a second
	Step       string            `json:"step,omitempty"`       // a line for the user
	Ask        *ask              `json:"ask,omitempty"`        // for the credentials of a node
	Given      *given            `json:"given,omitempty"`      // the answer
	NodeTokens map[string]string `json:"nodeTokens,omitempty"` // renewed, by node
}

// hello is a worker's first message.
type hello struct {
	Protocol int    `json:"protocol"`
	Build    string `json:"build"`
	Token    string `json:"token"`
	Index    int    `json:"index"`
	Name     string `json:"name"` // host and process
}

// welcome is the answer, once all workers have joined.
type welcome struct {
	Share    load.Share        `json:"share"`
	Scenario []byte            `json:"scenario"`
	Files    map[string][]byte `json:"files,omitempty"` // that the scenario names
	Target   target            `json:"target"`
	Nodes    *nodesSetup       `json:"nodes,omitempty"` // nil: the workers do not divide them
}

// clock relates a worker's clock to the coordinator's.
type clock struct {
	Offset      time.Duration `json:"offset"`      // of the worker's before the coordinator's
	Uncertainty time.Duration `json:"uncertainty"` // by how much Offset may be wrong
}

// call asks a worker to do something. Its reply has the same ID.
type call struct {
	ID   int64     `json:"id"` // 0: no reply is wanted
	Verb string    `json:"verb"`
	Load string    `json:"load,omitempty"`
	Name string    `json:"name,omitempty"` // of a phase
	At   time.Time `json:"at,omitzero"`    // by the coordinator's clock

	Fault   *node.Fault `json:"fault,omitempty"`
	Numbers []int       `json:"numbers,omitempty"` // of nodes
}

// The verbs of calls.
const (
	verbTime    = "time"    // tell the time
	verbPrepare = "prepare" // a load
	verbPhase   = "phase"   // one begins
	verbRun     = "run"     // a load, from At on; the reply comes at its end
	verbStop    = "stop"    // a load
	verbPause   = "pause"   // all loads, at At; no reply
	verbResume  = "resume"  // all loads, at At; no reply
	verbSettle  = "settle"  // a load
	verbMetrics = "metrics" // of the loads
	verbResults = "results" // so far
	verbEnd     = "end"     // the worker; the reply has the last results

	verbNodesStart = "nodes-start" // register its nodes, from At on; the reply comes when they are Ready
	verbNodesAble  = "nodes-able"  // the numbers of its nodes that Fault may hit
	verbNodesHit   = "nodes-hit"   // begin Fault of the nodes of Numbers
	verbNodesStop  = "nodes-stop"
)

// reply is the answer to a call.
type reply struct {
	ID      int64     `json:"id"`
	Error   string    `json:"error,omitempty"`
	Late    bool      `json:"late,omitempty"` // the worker came too late to begin
	Time    time.Time `json:"time,omitzero"`
	Results *results  `json:"results,omitempty"`
	Metrics [][]byte  `json:"metrics,omitempty"` // families in protobuf
	Numbers []int     `json:"numbers,omitempty"` // of nodes

	at time.Time // when it was received
}

// results holds a worker's measurements so far.
type results struct {
	Loads     map[string][]load.Part `json:"loads"`
	Generator result.Generator       `json:"generator"`
	// Saturated: bounds that the worker passed, by phase; "": outside of any
	Saturated map[string][]string `json:"saturated,omitempty"`
	Nodes     *node.Tally         `json:"nodes,omitempty"` // nil: it has none
}

// link sends and receives messages.
type link struct {
	conn   net.Conn
	in     *bufio.Reader
	within time.Duration // for the next piece that is received
	until  time.Time     // for all that is received; zero: no limit

	mu sync.Mutex // held while a message is sent
}

func newLink(conn net.Conn) *link {
	l := &link{conn: conn}
	l.in = bufio.NewReaderSize(pieces{l}, piece)
	return l
}

// pieces reads a message in pieces, each within the link's time limit: a large message may take longer in total.
type pieces struct{ *link }

func (p pieces) Read(b []byte) (int, error) {
	deadline := time.Now().Add(p.within)
	if !p.until.IsZero() && p.until.Before(deadline) {
		deadline = p.until
	}
	_ = p.conn.SetReadDeadline(deadline) // a closed connection fails below
	return p.conn.Read(b)
}

// send writes a message. It is safe for concurrent use.
func (l *link) send(m message) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	rest := append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...)
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(rest) > 0 {
		_ = l.conn.SetWriteDeadline(time.Now().Add(writeWithin)) // a closed connection fails below
		n, err := l.conn.Write(rest[:min(piece, len(rest))])
		if err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// shown makes a peer's text safe to display: one short line without control characters.
func shown(text string) string {
	if len(text) > longestShown {
		text = strings.ToValidUTF8(text[:longestShown], "") + "..."
	}
	return terminal.Clean(text)
}

// receive reads a message of up to most bytes. It fails if nothing arrives within the given time.
func (l *link) receive(most uint32, within time.Duration) (m message, err error) {
	l.within = within
	var size [4]byte
	if _, err := io.ReadFull(l.in, size[:]); err != nil {
		return m, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > most {
		return m, fmt.Errorf("a message of %d bytes, of at most %d", n, most)
	}
	data, err := io.ReadAll(io.LimitReader(l.in, int64(n)))
	if err != nil {
		return m, err
	}
	if uint32(len(data)) < n {
		return m, io.ErrUnexpectedEOF
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("no message of a worker or coordinator: %w", err)
	}
	return m, nil
}

// isTimeout reports whether nothing arrived in time.
func isTimeout(err error) bool {
	var late net.Error
	return errors.As(err, &late) && late.Timeout()
}
