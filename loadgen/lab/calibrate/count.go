package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// counts holds the number of requests of one node by verb and resource, such as "patch pods/status".
type counts map[string]int

func (c counts) total() (n int) {
	for _, v := range c {
		n += v
	}
	return n
}

// reader reads the audit log while it grows.
type reader struct {
	file *os.File
	text *bufio.Reader
	rest []byte
}

func openLog(path string) (*reader, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &reader{file: file, text: bufio.NewReader(file)}, nil
}

// Keys in `counts` of the requests that an idle node sends to renew its Lease and to report its status.
const (
	renewal    = "update leases"
	nodeReport = "patch nodes/status"
)

// read adds to each node's counts the requests that were logged since the last call, except requests whose key is in
// `but`. It returns the number of added requests.
func (r *reader) read(into map[string]counts, but ...string) (added int, err error) {
	err = r.each(func(e *auditv1.Event) {
		of, ok := into[sender(e.User.Username, e.UserAgent)]
		if key := keyOf(e); ok && key != "" && !slices.Contains(but, key) {
			of[key]++
			added++
		}
	})
	return added, err
}

// each calls f for each audit event since the last call.
func (r *reader) each(f func(*auditv1.Event)) error {
	for {
		line, err := r.text.ReadBytes('\n')
		r.rest = append(r.rest, line...)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var e auditv1.Event
		if err := json.Unmarshal(r.rest, &e); err != nil {
			return fmt.Errorf("read the audit log: %w", err)
		}
		r.rest = r.rest[:0]
		f(&e)
	}
}

// keyOf returns the key in `counts` for a request: its verb and resource. It returns "" if the request is not counted.
func keyOf(e *auditv1.Event) string {
	if (e.Verb == "watch") != (e.Stage == auditv1.StageResponseStarted) {
		return "" // a watch counts when it opens, other requests when they end
	}
	if e.Verb == "watch" && !strings.Contains(e.RequestURI, "sendInitialEvents=true") {
		return "" // a reopened watch: nodes reopen watches after a random time of 5 to 10 minutes
	}
	if e.ObjectRef == nil {
		return e.Verb + " " + e.RequestURI
	}
	verb := e.Verb
	if e.ResponseStatus != nil && e.ResponseStatus.Code == http.StatusForbidden {
		return "" // the Node authorizer did not know the pod's binding yet; the kubelet retries
	}
	if verb == "list" {
		verb = "watch" // a kubelet lists when its watch was refused
	}
	if e.ObjectRef.Resource == "events" && e.Verb == "create" && ofMachine(e) {
		return ""
	}
	resource := e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		resource += "/" + e.ObjectRef.Subresource
	}
	return verb + " " + resource
}

// ofMachine reports whether the request writes an Event that warns that this machine uses cgroup v1. Such an Event is
// about the machine, not about the kubelet's work.
func ofMachine(e *auditv1.Event) bool {
	var event struct{ Reason string }
	return e.RequestObject != nil && json.Unmarshal(e.RequestObject.Raw, &event) == nil && event.Reason == "CgroupV1"
}

// row compares the number of requests that the real and the simulated node sent with one verb and resource, per pod or
// per node.
type row struct {
	Stage     string  `json:"stage"`
	Request   string  `json:"request"`
	Real      float64 `json:"real"`
	Simulated float64 `json:"simulated"`
}

// tolerance is the maximum relative difference between simulated and real counts.
const tolerance = 0.05

func (r row) ratio() float64 { return r.Simulated / r.Real }

func (r row) within() bool { return math.Abs(r.Simulated-r.Real) <= tolerance*r.Real }

// compare returns the rows of a stage of the calibration. It divides all counts by n, the number of pods or nodes.
func compare(stage string, real, simulated counts, n int) (rows []row) {
	by := float64(n)
	for _, key := range union(real, simulated) {
		rows = append(rows, row{stage, key, float64(real[key]) / by, float64(simulated[key]) / by})
	}
	return append(rows, row{stage, "all", float64(real.total()) / by, float64(simulated.total()) / by})
}

// print writes the rows as a table and returns how many differ by more than the tolerance.
func print(to io.Writer, rows []row) (off int) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "stage\trequest\treal\tsimulated\tratio\t")
	last := ""
	for _, r := range rows {
		stage, mark := r.Stage, ""
		if stage == last {
			stage = ""
		}
		last = r.Stage
		if !r.within() {
			mark = "over 5%"
			off++
		}
		ratio := "-"
		if r.Real > 0 {
			ratio = fmt.Sprintf("%.2f", r.ratio())
		}
		fmt.Fprintf(w, "%s\t%s\t%.4g\t%.4g\t%s\t%s\n", stage, r.Request, r.Real, r.Simulated, ratio, mark)
	}
	_ = w.Flush() // to standard output
	return off
}

// Bounds of a stage: it ends when the nodes have sent no request for the duration `quiet`, but after at most `longest`.
const (
	quiet   = 4 * time.Second
	longest = 90 * time.Second
)
