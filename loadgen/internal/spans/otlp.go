package spans

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// FromProto converts spans of the OpenTelemetry protocol. process names the process that sent them; if it is empty,
// FromProto uses the resource's service.name and service.instance.id. It omits spans without a valid trace ID and span
// ID, and counts them in invalid.
func FromProto(all []*tracepb.ResourceSpans, process string) (spans []Span, invalid int) {
	for _, resource := range all {
		name := process
		if name == "" {
			name = serviceOf(fromAttributes(resource.GetResource().GetAttributes()))
		}
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				span := Span{
					Process: name, Name: s.GetName(), Client: s.GetKind() == tracepb.Span_SPAN_KIND_CLIENT,
					Start: timeOf(s.GetStartTimeUnixNano()), End: timeOf(s.GetEndTimeUnixNano()),
					Failed: s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR, Attributes: fromAttributes(s.GetAttributes()),
				}
				if !setID(span.Trace[:], s.GetTraceId()) || !setID(span.ID[:], s.GetSpanId()) {
					invalid++
					continue
				}
				setID(span.Parent[:], s.GetParentSpanId())
				if links := s.GetLinks(); len(links) > 0 {
					setID(span.Link.Trace[:], links[0].GetTraceId())
					setID(span.Link.ID[:], links[0].GetSpanId())
				}
				for _, e := range s.GetEvents()[:min(len(s.GetEvents()), maxEvents+1)] { // one too many, so that Span.Limit reports it
					span.Events = append(span.Events, Event{e.GetName(), timeOf(e.GetTimeUnixNano()), fromAttributes(e.GetAttributes())})
				}
				spans = append(spans, span)
			}
		}
	}
	return spans, invalid
}

// timeOf limits a time to latestTime, because an int64 cannot hold all uint64 values.
func timeOf(ns uint64) int64 { return int64(min(ns, latestTime)) }

// setID copies an id. It returns false if the id has another length or is zero.
func setID(to, from []byte) bool {
	if len(from) != len(to) || strings.Trim(string(from), "\x00") == "" {
		return false
	}
	copy(to, from)
	return true
}

func serviceOf(all []Attribute) string {
	s := Span{Attributes: all}
	name, instance := s.Attribute("service.name"), s.Attribute("service.instance.id")
	return strings.Trim(name+" "+instance, " ")
}

func fromAttributes(all []*commonpb.KeyValue) []Attribute {
	var attributes []Attribute
	for _, a := range all[:min(len(all), maxAttributes+1)] {
		attributes = append(attributes, Attribute{a.GetKey(), textOf(a.GetValue())})
	}
	return attributes
}

func textOf(v *commonpb.AnyValue) string {
	switch v := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		return v.StringValue
	case *commonpb.AnyValue_BoolValue:
		return strconv.FormatBool(v.BoolValue)
	case *commonpb.AnyValue_IntValue:
		return strconv.FormatInt(v.IntValue, 10)
	case *commonpb.AnyValue_DoubleValue:
		return strconv.FormatFloat(v.DoubleValue, 'g', -1, 64)
	case nil:
		return ""
	}
	return "(list or bytes)"
}

// The types below are the JSON form of the OpenTelemetry protocol (OTLP/JSON, one TracesData per line as the collector's
// file exporter writes it): ids in hexadecimal, 64-bit integers as strings.
type (
	tracesData struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   attributed   `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	attributed struct {
		Attributes []keyValue `json:"attributes,omitempty"`
	}
	scopeSpans struct {
		Spans []jsonSpan `json:"spans"`
	}
	jsonSpan struct {
		TraceID    TraceID     `json:"traceId"`
		SpanID     ID          `json:"spanId"`
		Parent     ID          `json:"parentSpanId,omitzero"`
		Name       string      `json:"name"`
		Kind       int         `json:"kind"`
		Start      integer     `json:"startTimeUnixNano"`
		End        integer     `json:"endTimeUnixNano"`
		Attributes []keyValue  `json:"attributes,omitempty"`
		Events     []jsonEvent `json:"events,omitempty"`
		Links      []jsonLink  `json:"links,omitempty"`
		Status     status      `json:"status,omitzero"`
	}
	jsonEvent struct {
		At         integer    `json:"timeUnixNano"`
		Name       string     `json:"name"`
		Attributes []keyValue `json:"attributes,omitempty"`
	}
	jsonLink struct {
		TraceID TraceID `json:"traceId"`
		SpanID  ID      `json:"spanId"`
	}
	status struct {
		Code int `json:"code,omitempty"`
	}
	keyValue struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
)

const (
	kindInternal = 1
	kindClient   = 3
	statusError  = 2
)

// integer is a 64-bit integer that is a string in JSON. Numbers are accepted too.
type integer int64

func (i integer) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, strconv.FormatInt(int64(i), 10)), nil
}

func (i *integer) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseUint(strings.Trim(string(text), `"`), 10, 64)
	*i = integer(timeOf(n))
	return err
}

// value is an attribute's value. Values of all types are read as text, and written as strings.
type value string

func (v value) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string{"stringValue": string(v)})
}

func (v *value) UnmarshalJSON(text []byte) error {
	var any struct {
		Text   *string         `json:"stringValue"`
		Bool   json.RawMessage `json:"boolValue"`
		Int    json.RawMessage `json:"intValue"`
		Double json.RawMessage `json:"doubleValue"`
		Array  json.RawMessage `json:"arrayValue"`
		List   json.RawMessage `json:"kvlistValue"`
		Bytes  json.RawMessage `json:"bytesValue"`
	}
	if err := json.Unmarshal(text, &any); err != nil {
		return err
	}
	if any.Text != nil {
		*v = value(*any.Text)
		return nil
	}
	for _, x := range [...]json.RawMessage{any.Bool, any.Int, any.Double, any.Array, any.List, any.Bytes} {
		*v += value(bytes.Trim(x, `"`))
	}
	return nil
}

// longestText is the maximum size in memory of the spans in a line of OTLP/JSON, in bytes. It is less than longestLine,
// because JSON may need six bytes for one byte of text, and ReadOTLP must accept the line.
const longestText = longestLine / 8

// WriteOTLP writes the spans of a trace as one line of OTLP/JSON, or as several lines if they are very large.
func WriteOTLP(w io.Writer, all []Span) error {
	for size := 0; len(all) > 0; size = 0 {
		n := 0
		for ; n < len(all) && (n == 0 || size+all[n].size() <= longestText); n++ {
			size += all[n].size()
		}
		if err := writeLine(w, all[:n]); err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}

func writeLine(w io.Writer, all []Span) error {
	var data tracesData
	of := map[string]int{}
	for _, s := range all {
		i, ok := of[s.Process]
		if !ok {
			i = len(data.ResourceSpans)
			of[s.Process] = i
			data.ResourceSpans = append(data.ResourceSpans, resourceSpans{attributed{[]keyValue{{"service.name", value(s.Process)}}}, []scopeSpans{{}}})
		}
		j := jsonSpan{TraceID: s.Trace, SpanID: s.ID, Parent: s.Parent, Name: s.Name, Kind: kindInternal, Start: integer(s.Start), End: integer(s.End), Attributes: toJSON(s.Attributes)}
		if s.Link != (Link{}) {
			j.Links = []jsonLink{{s.Link.Trace, s.Link.ID}}
		}
		if s.Client {
			j.Kind = kindClient
		}
		if s.Failed {
			j.Status.Code = statusError
		}
		for _, e := range s.Events {
			j.Events = append(j.Events, jsonEvent{integer(e.At), e.Name, toJSON(e.Attributes)})
		}
		to := &data.ResourceSpans[i].ScopeSpans[0].Spans
		*to = append(*to, j)
	}
	return json.NewEncoder(w).Encode(data)
}

func toJSON(all []Attribute) []keyValue {
	var values []keyValue
	for _, a := range all {
		values = append(values, keyValue{a.Key, value(a.Value)})
	}
	return values
}

// Limits of a line of OTLP/JSON.
const (
	longestLine = 16 << 20 // maximum length in bytes
	maxObjects  = 500_000  // maximum number of objects; an empty one has 2 bytes, and takes about 200 bytes in memory
)

// ReadOTLP reads OTLP/JSON, one TracesData per line, and calls take for each span. It returns the number of spans without
// a valid ID. An error names the line.
func ReadOTLP(r io.Reader, take func(Span)) (invalid int, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longestLine)
	for n := 1; lines.Scan(); n++ {
		bad, err := readLine(lines.Bytes(), take)
		if invalid += bad; err != nil {
			return invalid, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return invalid, fmt.Errorf("a line is longer than %d MiB", longestLine>>20)
	}
	return invalid, lines.Err()
}

// readLine reads one line of OTLP/JSON, which may be empty. It returns the number of spans without a valid ID.
func readLine(line []byte, take func(Span)) (invalid int, err error) {
	if len(bytes.TrimSpace(line)) == 0 {
		return 0, nil
	}
	var data tracesData
	if err := unmarshal(line, maxObjects, &data); err != nil {
		return 0, err
	}
	for _, resource := range data.ResourceSpans {
		process := serviceOf(fromJSON(resource.Resource.Attributes))
		for _, scope := range resource.ScopeSpans {
			for _, j := range scope.Spans {
				s := Span{Trace: j.TraceID, ID: j.SpanID, Parent: j.Parent, Process: process, Name: j.Name, Client: j.Kind == kindClient, Start: int64(j.Start), End: int64(j.End), Failed: j.Status.Code == statusError, Attributes: fromJSON(j.Attributes)}
				if s.Trace == (TraceID{}) || s.ID == (ID{}) {
					invalid++
					continue
				}
				if len(j.Links) > 0 {
					s.Link = Link{j.Links[0].TraceID, j.Links[0].SpanID}
				}
				for _, e := range j.Events[:min(len(j.Events), maxEvents+1)] {
					s.Events = append(s.Events, Event{e.Name, int64(e.At), fromJSON(e.Attributes)})
				}
				take(s)
			}
		}
	}
	return invalid, nil
}

// unmarshal is like json.Unmarshal, but fails if the text has too many objects.
func unmarshal(text []byte, most int, into any) error {
	if n := bytes.Count(text, []byte("{")) + bytes.Count(text, []byte("null")); n > most {
		return fmt.Errorf("it has %d objects, more than %d", n, most)
	}
	return json.Unmarshal(text, into)
}

func fromJSON(all []keyValue) []Attribute {
	var attributes []Attribute
	for _, a := range all[:min(len(all), maxAttributes+1)] {
		attributes = append(attributes, Attribute{a.Key, string(a.Value)})
	}
	return attributes
}
