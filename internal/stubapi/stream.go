package stubapi

import (
	"net/http"
	"time"
)

// stream is the HTTP/2 stream of one request in progress.
type stream struct {
	conn                              *conn
	id                                uint32
	method, path, accept, contentType string
	body                              []byte
	request                           Request

	// window and the fields below are guarded by the connection's lock.
	window  int64
	through int64  // bytes of the response body that the flow-control windows have allowed
	pending []byte // bytes that the flow-control windows hold back
	last    bool   // whether the stream ends after pending
	onEnd   func() // called by the connection when the stream of a watch ends
}

// watching sets the function that the connection calls when the stream ends. It returns false if the stream has already
// ended.
func (st *stream) watching(onEnd func()) bool {
	st.conn.mu.Lock()
	defer st.conn.mu.Unlock()
	st.onEnd = onEnd
	return st.conn.streams[st.id] == st
}

// flowed returns the number of bytes of the body that the client's flow-control windows have allowed the stub to send.
func (st *stream) flowed() int64 {
	st.conn.mu.Lock()
	defer st.conn.mu.Unlock()
	return st.through
}

// respond sends a complete response in the encoding f.
func (st *stream) respond(f form, r response) {
	// Record the response before it can arrive. The recorded time is then never later than the client's.
	st.conn.server.record.answered(st.request.N, r.status, None)
	st.conn.head(st, r.status, f.contentType(false), len(r.body), 0)
	st.conn.body(st, r.body, true)
}

// giant is the size of the header field of GiantHeader, in bytes.
const giant = 1 << 20

// spoil injects the fault of a. If a has no fault, it responds with the status of a. body is the body of the correct
// response, or nil.
func (st *stream) spoil(a Answer, body []byte) {
	c := st.conn
	c.server.record.answered(st.request.N, a.Status, a.Fault)
	switch a.Fault {
	case None:
		reason := map[int]string{429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}[a.Status]
		b := encoded(map[string]any{
			"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason,
			"code": a.Status, "message": http.StatusText(a.Status),
		})
		c.head(st, a.Status, jsonType, len(b), a.RetryAfter/time.Second)
		c.body(st, b, true)
	case Reset:
		c.reset(st)
	case GoAway:
		c.goAway(st)
	case Hangup:
		c.abort()
	case Truncated:
		c.head(st, 200, jsonType, len(body), 0)
		c.body(st, body[:len(body)/2], true)
	case Cut:
		c.head(st, 200, jsonType, len(body), 0)
		c.body(st, body[:len(body)/2], false)
		c.reset(st)
	case Garbled:
		b := []byte("{\"kind\": no object\x00\xff")
		c.head(st, 200, jsonType, len(b), 0)
		c.body(st, b, true)
	case EndlessHeaders:
		c.flood(st)
	case GiantHeader:
		c.giantHeader(st)
	case BadFrame:
		c.badFrame()
	}
}
