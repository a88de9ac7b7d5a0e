package spans

import (
	"encoding/json"
	"fmt"
	"io"
)

// WriteJaeger writes traces in the JSON form that Jaeger's query service returns and its UI opens as a file. Times are
// microseconds, rounded down, so that a child stays inside its parent.
func WriteJaeger(w io.Writer, all []Trace) error {
	type tag struct {
		Key   string `json:"key"`
		Type  string `json:"type"`
		Value any    `json:"value"`
	}
	type reference struct {
		Type  string `json:"refType"`
		Trace string `json:"traceID"`
		Span  string `json:"spanID"`
	}
	type log struct {
		At     int64 `json:"timestamp"`
		Fields []tag `json:"fields"`
	}
	type span struct {
		Trace      string      `json:"traceID"`
		ID         string      `json:"spanID"`
		Name       string      `json:"operationName"`
		References []reference `json:"references"`
		Start      int64       `json:"startTime"`
		Duration   int64       `json:"duration"`
		Tags       []tag       `json:"tags"`
		Logs       []log       `json:"logs"`
		Process    string      `json:"processID"`
	}
	type process struct {
		Service string `json:"serviceName"`
		Tags    []tag  `json:"tags"`
	}
	type trace struct {
		ID        string             `json:"traceID"`
		Spans     []span             `json:"spans"`
		Processes map[string]process `json:"processes"`
	}
	tags := func(all []Attribute) []tag {
		list := []tag{}
		for _, a := range all {
			list = append(list, tag{a.Key, "string", a.Value})
		}
		return list
	}
	data := []trace{}
	for _, t := range all {
		x := trace{ID: t.Trace.String(), Spans: []span{}, Processes: map[string]process{}}
		names := map[string]string{}
		for _, s := range t.All() {
			id, ok := names[s.Process]
			if !ok {
				id = fmt.Sprintf("p%d", len(names)+1)
				names[s.Process] = id
				x.Processes[id] = process{s.Process, []tag{}}
			}
			j := span{
				Trace: s.Trace.String(), ID: s.ID.String(), Name: s.Name, References: []reference{}, Start: s.Start / 1000, Duration: s.End/1000 - s.Start/1000,
				Tags: tags(s.Attributes), Logs: []log{}, Process: id,
			}
			if s.Parent != (ID{}) {
				j.References = append(j.References, reference{"CHILD_OF", j.Trace, s.Parent.String()})
			}
			if s.Client {
				j.Tags = append(j.Tags, tag{"span.kind", "string", "client"})
			}
			if s.Failed {
				j.Tags = append(j.Tags, tag{"error", "bool", true})
			}
			for _, e := range s.Events {
				j.Logs = append(j.Logs, log{e.At / 1000, append([]tag{{"event", "string", e.Name}}, tags(e.Attributes)...)})
			}
			x.Spans = append(x.Spans, j)
		}
		data = append(data, x)
	}
	return json.NewEncoder(w).Encode(map[string]any{"data": data})
}
