package spans

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// exported is a trace with everything that an export must carry: a parent in another process, a missing parent, a failed
// span, events, attributes, and spans shorter than a microsecond. Their ends round differently than their lengths.
func exported() Trace {
	r := Request{Trace: traceID(7), ID: id(1), Load: "news", Verb: "patch", Resource: "configmaps", Phase: "storm", Status: 503}
	r.Due = 1_800_000_000_123_456_789
	r.Sent, r.First, r.Last = r.Due+1_700, r.Due+9_000_100, r.Due+9_000_300
	span := func(n, parent int, process, name string, from, to int64) Span {
		return Span{Trace: r.Trace, ID: id(n), Parent: id(parent), Process: process, Name: name, Start: r.Due + from, End: r.Due + to}
	}
	all := []Span{
		span(2, 1, "kube-apiserver-0", "PATCH", 2_000, 9_000_211),
		span(3, 2, "kube-apiserver-0", "audit", 9_000_100, 9_000_211), // 111 ns, over the edge of a microsecond
		span(4, 2, "kube-apiserver-0", "etcdserverpb.KV/Txn", 3_000, 8_000_999),
		span(5, 4, "etcd-0", "txn", 3_001, 8_000_998),
		span(6, 99, "etcd-0", "orphan", 4_000, 5_000),
	}
	all[2].Client, all[1].Failed = true, true
	all[3].Attributes = []Attribute{{"audit-id", "x"}}
	all[3].Events = []Event{{"Send raft proposal", r.Due + 3_500, []Attribute{{"n", "1"}}}, {"Receive raft result", r.Due + 8_000_998, nil}}
	return Trace{Request: r, Spans: all}
}

// The JSON that Jaeger's query service returns and its UI reads: internal/uimodel/model.go of jaegertracing/jaeger at
// 8498073, in the envelope of its HTTP API. Optional fields are left out where we write none.
type (
	uiResponse struct {
		Data []struct {
			TraceID   string               `json:"traceID"`
			Spans     []uiSpan             `json:"spans"`
			Processes map[string]uiProcess `json:"processes"`
			Warnings  []string             `json:"warnings"`
		} `json:"data"`
		Total, Limit, Offset int
		Errors               []any `json:"errors"`
	}
	uiSpan struct {
		TraceID       string        `json:"traceID"`
		SpanID        string        `json:"spanID"`
		Flags         uint32        `json:"flags"`
		OperationName string        `json:"operationName"`
		References    []uiReference `json:"references"`
		StartTime     uint64        `json:"startTime"` // microseconds since 1970
		Duration      uint64        `json:"duration"`  // microseconds
		Tags          []uiTag       `json:"tags"`
		Logs          []struct {
			Timestamp uint64  `json:"timestamp"`
			Fields    []uiTag `json:"fields"`
		} `json:"logs"`
		ProcessID string   `json:"processID"`
		Warnings  []string `json:"warnings"`
	}
	uiReference struct {
		RefType string `json:"refType"`
		TraceID string `json:"traceID"`
		SpanID  string `json:"spanID"`
	}
	uiProcess struct {
		ServiceName string  `json:"serviceName"`
		Tags        []uiTag `json:"tags"`
	}
	uiTag struct {
		Key   string `json:"key"`
		Type  string `json:"type"`
		Value any    `json:"value"`
	}
)

// typed reports whether the value of a tag has the type that the tag names.
func (t uiTag) typed() bool {
	switch t.Value.(type) {
	case string:
		return t.Type == "string"
	case bool:
		return t.Type == "bool"
	}
	return false
}

func TestJaegerFollowsItsSchema(t *testing.T) {
	x := exported()
	var b bytes.Buffer
	if err := WriteJaeger(&b, []Trace{x}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "null") {
		t.Error("Jaeger's UI reads lists, not null")
	}
	d := json.NewDecoder(&b)
	d.DisallowUnknownFields()
	var got uiResponse
	if err := d.Decode(&got); err != nil || len(got.Data) != 1 {
		t.Fatal(err, got)
	}
	trace := got.Data[0]
	if want := append(x.Request.Spans(), x.Spans...); trace.TraceID != x.Trace.String() || len(trace.Spans) != len(want) {
		t.Fatalf("trace %s with %d spans, want %s with %d", trace.TraceID, len(trace.Spans), x.Trace, len(want))
	}
	spans := map[string]uiSpan{}
	used := map[string]bool{}
	for _, s := range trace.Spans {
		spans[s.SpanID], used[s.ProcessID] = s, true
	}
	tagged := map[string]bool{}
	for _, s := range trace.Spans {
		p, known := trace.Processes[s.ProcessID]
		if !known || p.ServiceName == "" || s.TraceID != trace.TraceID || s.OperationName == "" {
			t.Errorf("span %+v, process %+v", s, p)
		}
		tags := s.Tags
		for _, l := range s.Logs {
			if l.Timestamp < s.StartTime || l.Timestamp > s.StartTime+s.Duration {
				t.Errorf("%s: an event at %d is outside of the span", s.OperationName, l.Timestamp)
			}
			tags = append(tags, l.Fields...)
		}
		for _, tag := range tags {
			if !tag.typed() {
				t.Errorf("%s: tag %+v", s.OperationName, tag)
			}
		}
		for _, tag := range s.Tags {
			tagged[s.OperationName+" "+tag.Key] = true
		}
		for _, ref := range s.References {
			parent, known := spans[ref.SpanID]
			if ref.RefType != "CHILD_OF" || ref.TraceID != trace.TraceID || known == (s.OperationName == "orphan") {
				t.Errorf("%s: reference %+v", s.OperationName, ref)
			}
			if known && (s.StartTime < parent.StartTime || s.StartTime+s.Duration > parent.StartTime+parent.Duration) {
				t.Errorf("%s from %d for %d µs is not in %s from %d for %d µs", s.OperationName, s.StartTime, s.Duration, parent.OperationName, parent.StartTime, parent.Duration)
			}
		}
	}
	if len(used) != len(trace.Processes) || len(used) != 3 {
		t.Errorf("processes %v, used %v", trace.Processes, used)
	}
	txn := spans[id(5).String()]
	if txn.StartTime != 1_800_000_000_123_459 || txn.Duration != 7_998 || len(txn.Logs) != 2 || txn.Logs[0].Fields[0] != (uiTag{"event", "string", "Send raft proposal"}) {
		t.Errorf("%+v", txn)
	}
	if !tagged["audit error"] || !tagged["etcdserverpb.KV/Txn span.kind"] || len(spans[x.ID.String()].References) != 0 {
		t.Errorf("tags %v, request %+v", tagged, spans[x.ID.String()])
	}
}

// WriteOTLP writes messages of the protocol. As the OTLP specification says, they differ from protobuf's JSON form in one
// point: IDs are hexadecimal, not base64.
func TestOTLPIsTheProtocol(t *testing.T) {
	x := exported()
	want := append(x.Request.Spans(), x.Spans...)
	var line bytes.Buffer
	if err := WriteOTLP(&line, want); err != nil {
		t.Fatal(err)
	}
	if strings.Count(line.String(), "\n") != 1 || !strings.Contains(line.String(), `"startTimeUnixNano":"1800000000123456789"`) {
		t.Errorf("not one line, or 64-bit integers are not strings: %s", &line)
	}
	var tree any
	if err := json.Unmarshal(line.Bytes(), &tree); err != nil {
		t.Fatal(err)
	}
	encodeIDs(t, tree)
	text, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	var data tracepb.TracesData
	if err := protojson.Unmarshal(text, &data); err != nil {
		t.Fatal(err)
	}
	got, invalid := FromProto(data.GetResourceSpans(), "")
	if invalid != 0 {
		t.Errorf("%d invalid spans", invalid)
	}
	byID := map[ID]Span{}
	for _, s := range got {
		byID[s.ID] = s
	}
	for _, s := range want {
		if !reflect.DeepEqual(byID[s.ID], s) {
			t.Errorf("got  %+v\nwant %+v", byID[s.ID], s)
		}
	}
	for _, resource := range data.GetResourceSpans() {
		for _, s := range resource.GetScopeSpans()[0].GetSpans() {
			if k := s.GetKind(); k != tracepb.Span_SPAN_KIND_INTERNAL && k != tracepb.Span_SPAN_KIND_CLIENT {
				t.Errorf("%s has the kind %s", s.GetName(), k)
			}
		}
	}
}

// encodeIDs changes the IDs in a JSON value from hexadecimal to base64.
func encodeIDs(t *testing.T, v any) {
	t.Helper()
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			encodeIDs(t, x)
		}
	case map[string]any:
		for key, x := range v {
			if key != "traceId" && key != "spanId" && key != "parentSpanId" {
				encodeIDs(t, x)
				continue
			}
			id, err := hex.DecodeString(x.(string))
			if err != nil || len(id) != 8 && len(id) != 16 {
				t.Errorf("%s %v: %v", key, x, err)
			}
			v[key] = base64.StdEncoding.EncodeToString(id)
		}
	}
}
