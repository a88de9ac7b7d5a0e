package capture

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/recording"
)

// entry is a key with its value, for maps whose order matters.
type entry struct {
	key   string
	value any
}

// pack appends a value in MessagePack's longer forms.
func pack(b []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(b, 0xc0)
	case bool:
		if v {
			return append(b, 0xc3)
		}
		return append(b, 0xc2)
	case int:
		return binary.BigEndian.AppendUint64(append(b, 0xd3), uint64(v))
	case uint64:
		return binary.BigEndian.AppendUint64(append(b, 0xcf), v)
	case string:
		return append(binary.BigEndian.AppendUint16(append(b, 0xda), uint16(len(v))), v...)
	case []any:
		b = binary.BigEndian.AppendUint32(append(b, 0xdd), uint32(len(v)))
		for _, item := range v {
			b = pack(b, item)
		}
		return b
	case []entry:
		b = binary.BigEndian.AppendUint16(append(b, 0xde), uint16(len(v)))
		for _, e := range v {
			b = pack(pack(b, e.key), e.value)
		}
		return b
	case map[string]any:
		b = append(b, 0x80|byte(len(v)))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			b = pack(pack(b, key), v[key])
		}
		return b
	}
	panic("no such value")
}

func simKubeFile(t *testing.T, data []byte) SimKubeOptions {
	t.Helper()
	dir := t.TempDir()
	o := SimKubeOptions{File: filepath.Join(dir, "a.sktrace"), Out: filepath.Join(dir, "out.recording"), KeepNames: true}
	if err := os.WriteFile(o.File, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return o
}

func simKubeTrace() []entry {
	deployment := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "namespace": "shop"}}
	namespace := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "shop"}}
	event := func(ts int, applied, deleted []any) any {
		return map[string]any{"ts": ts, "applied_objs": applied, "deleted_objs": deleted}
	}
	return []entry{
		{"version", 2}, {"config", map[string]any{"trackedObjects": map[string]any{}}},
		{"events", []any{
			event(1700000000, []any{namespace, deployment, map[string]any{"kind": "Pod"}}, []any{}),
			event(1700000010, []any{deployment}, []any{}),
			event(1700000020, []any{}, []any{deployment}),
			event(1700000030, []any{deployment}, []any{}),
		}},
		{"index", map[string]any{"apps/v1.Deployment": map[string]any{"shop/web": uint64(1) << 63}}},
		{"pod_lifecycles", map[string]any{}},
	}
}

// asJSON returns a value as indented JSON.
func asJSON(t *testing.T, value any) []byte {
	t.Helper()
	if entries, ok := value.([]entry); ok {
		object := map[string]any{}
		for _, e := range entries {
			object[e.key] = e.value
		}
		value = object
	}
	data, err := json.MarshalIndent(value, "", "    ")
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("\n"), data...)
}

func TestSimKubeObjectsBecomeWrites(t *testing.T) {
	for name, data := range map[string][]byte{"MessagePack": pack(nil, simKubeTrace()), "JSON": asJSON(t, simKubeTrace())} {
		t.Run(name, func(t *testing.T) { testSimKube(t, data) })
	}
}

func testSimKube(t *testing.T, data []byte) {
	r, err := SimKube(t.Context(), simKubeFile(t, data))
	if err != nil {
		t.Fatal(err)
	}
	got := readBack(t, r)
	deployment := func(at recording.Micros, verb string, code, size int) recording.Request {
		return recording.Request{At: at, Verb: verb, Group: "apps", Version: "v1", Resource: "deployments", Namespace: "shop", Name: "web", Code: code, Size: size}
	}
	const size = 89
	want := []recording.Request{
		{Verb: "create", Version: "v1", Resource: "namespaces", Name: "shop", Code: 201, Size: 65},
		deployment(0, "create", 201, size), deployment(10e6, "update", 200, size), deployment(20e6, "delete", 200, 0), deployment(30e6, "create", 201, size),
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("requests\n%+v, want\n%+v", got, want)
	}
	if !noted(r, "lifecycles of pods are not imported") || !noted(r, "bodies of requests that were dropped except for their sizes (a replay creates workloads with 0 replicas): 4") {
		t.Errorf("notes %q", r.Header.Notes)
	}
	if want := map[string]int64{"objects without apiVersion, kind or name": 1}; !reflect.DeepEqual(r.Header.Dropped, want) {
		t.Errorf("dropped %v, want %v", r.Header.Dropped, want)
	}
}

func TestBadSimKubeRecordingIsRefused(t *testing.T) {
	good := pack(nil, simKubeTrace())
	other := simKubeTrace()
	other[0].value = 3
	swapped := simKubeTrace()
	swapped[0], swapped[2] = swapped[2], swapped[0]
	events := func(of ...any) []byte { return asJSON(t, []entry{{"version", 2}, {"events", of}}) }
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"cut":                 {good[:len(good)/2], "the data is incomplete (the file is truncated)"},
		"empty":               {nil, "the data is incomplete"},
		"empty JSON":          {[]byte("{}"), "the version is missing or not the first field (loadgen reads version 2, as .sktrace or JSON)"},
		"version last":        {pack(nil, swapped), "the version is missing or not the first field"},
		"cut JSON":            {asJSON(t, simKubeTrace())[:900], "the data is incomplete (the file is truncated)"},
		"JSON with a mistake": {[]byte(`{"version":2,"events":[}`), "invalid character '}'"},
		"other JSON":          {[]byte(`{"version":2,"events":{}}`), "events must be a list"},
		"no time":             {events(map[string]any{"ts": 1.5}), "event 1 has no valid ts"},
		"a time too late":     {events(map[string]any{"ts": int64(1) << 60}), "event 1 has no valid ts"},
		"another version":     {pack(nil, other), "the version is 3 (loadgen reads version 2, as .sktrace or JSON)"},
		"another in JSON":     {asJSON(t, other), "the version is 3"},
		"no event":            {pack(nil, []entry{{"version", 2}}), "the trace has no objects"},
		"no object":           {events(map[string]any{"ts": 1, "applied_objs": []any{}}), "the trace has no objects"},
		"JSON too long":       {append([]byte(`{"version":2,"x":"`), bytes.Repeat([]byte("x"), longestJSON)...), "the JSON is larger than 64 MiB"},
		"deep":                {append(pack(nil, []entry{{"version", 2}})[:0], append([]byte{0x81, 0xa1, 'x'}, []byte(strings.Repeat("\x91", 1000))...)...), "the data is nested too deeply"},
		"a list too long":     {[]byte("\x81\xa1x\xdd\xff\xff\xff\xff"), "more than 8388608 elements"},
		"a map too long":      {[]byte("\x81\xa1x\xdf\x00\x50\x00\x00"), "more than 8388608 elements"},
		"lists with too much": {[]byte("\x81\xa1x\xdd\x00\x50\x00\x00\xdd\x00\x50\x00\x00"), "more than 8388608 elements"},
		"a string too long":   {[]byte{0x81, 0xa1, 'x', 0xdb, 0xff, 0xff, 0xff, 0xff}, "more than 16 MiB"},
	} {
		o := simKubeFile(t, c.data)
		_, err := SimKube(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), c.want) || exitcode.Of(err) != exitcode.Usage || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
		if _, err := os.Stat(o.Out); err == nil {
			t.Errorf("%s: the failed import left a recording", name)
		}
	}
	o := simKubeFile(t, good)
	if err := os.Truncate(o.File, longestSimKube+1); err != nil { // sparse
		t.Fatal(err)
	}
	if _, err := SimKube(t.Context(), o); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "it is larger than 4096 MiB") {
		t.Errorf("a large file: %v", err)
	}
}

// Each known field of a trace changes the requests or the notes. A note counts each unknown field.
func TestSimKubeFieldsAreNoticed(t *testing.T) {
	base := func() map[string]any {
		pod := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a", "namespace": "b", "labels": map[string]any{"c": "d"}}, "spec": map[string]any{"x": "y"}}
		return map[string]any{
			"version": 2, "config": map[string]any{"trackedObjects": map[string]any{}}, "index": map[string]any{"v1.Pod": map[string]any{"b/a": 1}},
			"events":         []any{map[string]any{"ts": 10, "applied_objs": []any{pod}, "deleted_objs": []any{map[string]any{"kind": "Pod"}}}, map[string]any{"ts": 20, "applied_objs": []any{}, "deleted_objs": []any{pod}}},
			"pod_lifecycles": map[string]any{"b/a": map[string]any{"5": []any{map[string]any{"Running": 7}}}},
		}
	}
	result := func(file map[string]any) string {
		r, err := SimKube(t.Context(), simKubeFile(t, asJSON(t, file)))
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%+v %q %v", readBack(t, r), r.Header.Notes, r.Header.Dropped)
	}
	before := result(base())
	part := func(file map[string]any, i int) map[string]any {
		event := file["events"].([]any)[0].(map[string]any)
		object := event["applied_objs"].([]any)[0].(map[string]any)
		return []map[string]any{file, event, object, object["metadata"].(map[string]any), object["spec"].(map[string]any)}[i]
	}
	for i, place := range []string{"zz", "events[].zz"} {
		file := base()
		part(file, i)["zz"] = 1
		if got := result(file); !strings.Contains(got, place+" (1)") {
			t.Errorf("%s: %s", place, got)
		}
	}
	for i := range 5 {
		for key := range part(base(), i) {
			file := base()
			delete(part(file, i), key)
			if result(file) == before {
				t.Errorf("the result is the same without %s of part %d", key, i)
			}
		}
	}
	if !strings.Contains(before, "how long pods live): 1") {
		t.Errorf("the lifecycles are not counted: %s", before)
	}
}
