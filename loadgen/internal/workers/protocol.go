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

// protocolVersion is the version of the message format. Increase it whenever a message changes.
const protocolVersion = 2

const (
	// largestHello is the maximum size of a message, in bytes, from a peer that has not sent the token yet.
	largestHello = 16 << 10
	// largestOfWorker is the maximum size of a message from a worker, in bytes. Messages may contain histograms. A decoded
	// message takes several times as much memory.
	largestOfWorker = 64 << 20
	// largestMessage is the maximum size of a message from the coordinator, in bytes. Messages may contain a scenario
	// with its recordings.
	largestMessage = 512 << 20
	// longestShown is the maximum length in bytes of text from a peer in a line for the user.
	longestShown = 1000
	// piece is the maximum number of bytes of one read or write on a connection. writeWithin is the time limit for each
	// write.
	piece       = 64 << 10
	writeWithin = 10 * time.Second
)

// message is a message between the coordinator and a worker. One field is set, or none in a heartbeat.
type message struct {
	Hello   *hello   `json:"hello,omitempty"`
	Refused string   `json:"refused,omitempty"` // why the coordinator refuses the worker
	Welcome *welcome `json:"welcome,omitempty"`
	Clock   *clock   `json:"clock,omitempty"`
	Token   string   `json:"token,omitempty"` // the renewed token of the loads
	Call    *call    `json:"call,omitempty"`
	Reply   *reply   `json:"reply,omitempty"` // ID 0 means the reply to Welcome

	Slot   *samples.Slot        `json:"slot,omitempty"`
	Live   map[string]load.Live `json:"live,omitempty"`   // current values of the loads, by load name, once a second
	Opened string               `json:"opened,omitempty"` // name of a load whose watches are all open
	Over   string               `json:"over,omitempty"`   // name of a load that has no further arrivals
	Acks   []load.Ack           `json:"acks,omitempty"`   // acknowledged writes; times are by the coordinator's clock

	Nodes      *node.Live        `json:"nodes,omitempty"`      // state of the worker's nodes, once a second
	Step       string            `json:"step,omitempty"`       // a line for the user
	Ask        *ask              `json:"ask,omitempty"`        // request for the credentials of a node
	Given      *given            `json:"given,omitempty"`      // response to Ask
	NodeTokens map[string]string `json:"nodeTokens,omitempty"` // renewed tokens, by node
}

// hello is a worker's first message.
type hello struct {
	Protocol int    `json:"protocol"`
	Build    string `json:"build"`
	Token    string `json:"token"`
	Index    int    `json:"index"`
	Name     string `json:"name"` // host and process of the worker
}

// welcome is the coordinator's response to hello. The coordinator sends it after all workers have joined.
type welcome struct {
	Share    load.Share        `json:"share"`
	Scenario []byte            `json:"scenario"`
	Files    map[string][]byte `json:"files,omitempty"` // files that the scenario refers to
	Target   target            `json:"target"`
	Nodes    *nodesSetup       `json:"nodes,omitempty"` // nil if the workers do not divide the nodes
}

// clock is the measured offset between the clocks of a worker and the coordinator.
type clock struct {
	Offset      time.Duration `json:"offset"`      // positive if the worker's clock is ahead
	Uncertainty time.Duration `json:"uncertainty"` // maximum error of Offset
}

// call is a command of the coordinator to a worker. The reply has the same ID.
type call struct {
	ID   int64     `json:"id"` // 0 if no reply is expected
	Verb string    `json:"verb"`
	Load string    `json:"load,omitempty"`
	Name string    `json:"name,omitempty"` // name of the phase
	At   time.Time `json:"at,omitzero"`    // time to which the verb refers, by the coordinator's clock

	Fault   *node.Fault `json:"fault,omitempty"`
	Numbers []int       `json:"numbers,omitempty"` // numbers that identify nodes
}

// These are the verbs of calls.
const (
	verbTime    = "time"    // return the worker's time
	verbPrepare = "prepare" // prepare a load
	verbPhase   = "phase"   // a phase begins
	verbRun     = "run"     // run a load, beginning at At; the reply comes when it ends
	verbStop    = "stop"    // stop a load
	verbPause   = "pause"   // pause all loads at At; no reply
	verbResume  = "resume"  // resume all loads at At; no reply
	verbSettle  = "settle"  // wait until the watches of a load have delivered the load's writes
	verbMetrics = "metrics" // return the metrics of the loads
	verbResults = "results" // return the results so far
	verbEnd     = "end"     // end the worker; the reply has the last results

	verbNodesStart = "nodes-start" // register the worker's nodes, beginning at At; the reply comes when they are Ready
	verbNodesAble  = "nodes-able"  // return the numbers that identify the worker's nodes that Fault may affect
	verbNodesHit   = "nodes-hit"   // begin Fault on the nodes with these Numbers
	verbNodesStop  = "nodes-stop"
)

// reply is a worker's response to a call.
type reply struct {
	ID      int64     `json:"id"`
	Error   string    `json:"error,omitempty"`
	Late    bool      `json:"late,omitempty"` // whether the call arrived too long after its time At
	Time    time.Time `json:"time,omitzero"`
	Results *results  `json:"results,omitempty"`
	Metrics [][]byte  `json:"metrics,omitempty"` // metric families as protobuf
	Numbers []int     `json:"numbers,omitempty"` // numbers that identify nodes

	at time.Time // when the reply was received
}

// results holds a worker's measurements so far.
type results struct {
	Loads     map[string][]load.Part `json:"loads"`
	Generator result.Generator       `json:"generator"`
	// Saturated lists the resource limits that the worker exceeded, by phase. Phase "" means the time outside of all
	// phases.
	Saturated map[string][]string `json:"saturated,omitempty"`
	Nodes     *node.Tally         `json:"nodes,omitempty"` // nil if the worker has no nodes
}

// link sends and receives messages over a connection.
type link struct {
	conn   net.Conn
	in     *bufio.Reader
	within time.Duration // time limit for each read
	until  time.Time     // deadline for all reads; zero means no deadline

	mu sync.Mutex // held while a message is sent
}

func newLink(conn net.Conn) *link {
	l := &link{conn: conn}
	l.in = bufio.NewReaderSize(pieces{l}, piece)
	return l
}

// pieces reads from the connection. The time limit applies to each read, not to a whole message, because a large
// message may take longer.
type pieces struct{ *link }

func (p pieces) Read(b []byte) (int, error) {
	deadline := time.Now().Add(p.within)
	if !p.until.IsZero() && p.until.Before(deadline) {
		deadline = p.until
	}
	_ = p.conn.SetReadDeadline(deadline) // if the connection is closed, the read below fails
	return p.conn.Read(b)
}

// send sends a message. It is safe for concurrent use.
func (l *link) send(m message) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	rest := append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...)
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(rest) > 0 {
		_ = l.conn.SetWriteDeadline(time.Now().Add(writeWithin)) // if the connection is closed, the write below fails
		n, err := l.conn.Write(rest[:min(piece, len(rest))])
		if err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// shown makes text from a peer safe to show: one line without control characters, of at most longestShown bytes.
func shown(text string) string {
	if len(text) > longestShown {
		text = strings.ToValidUTF8(text[:longestShown], "") + "..."
	}
	return terminal.Clean(text)
}

// receive reads a message of at most `most` bytes. It fails if no data arrives for the duration `within`.
func (l *link) receive(most uint32, within time.Duration) (m message, err error) {
	l.within = within
	var size [4]byte
	if _, err := io.ReadFull(l.in, size[:]); err != nil {
		return m, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > most {
		return m, fmt.Errorf("a message has %d bytes, but the maximum is %d", n, most)
	}
	data, err := io.ReadAll(io.LimitReader(l.in, int64(n)))
	if err != nil {
		return m, err
	}
	if uint32(len(data)) < n {
		return m, io.ErrUnexpectedEOF
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("not a message of a worker or coordinator: %w", err)
	}
	return m, nil
}

func isTimeout(err error) bool {
	var late net.Error
	return errors.As(err, &late) && late.Timeout()
}
