package capture

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/recording"
)

// SimKubeOptions configure a recording of a SimKube trace. File and Out are required.
type SimKubeOptions struct {
	File, Out string
	KeepNames bool
}

// simKubeVersion is the supported version of SimKube's trace format (sk-core/src/trace in release 2.7). skctl writes
// MessagePack; SimKube's own test data have the same structure in JSON.
const simKubeVersion = 2

// longestSimKube is the maximum size of a trace in bytes. It limits the time needed to read a sparse file.
const longestSimKube = 4 << 30

// SimKube converts a SimKube trace to a Stormglass recording. A SimKube trace contains applied and deleted objects. The
// first apply of an object becomes a create; later ones become updates. If the file is invalid, SimKube returns a usage
// error.
func SimKube(ctx context.Context, o SimKubeOptions) (*Result, error) {
	f, err := userfile.Open(o.File, longestSimKube)
	if err != nil {
		return nil, exitcode.Usagef("SimKube trace %s: %w", o.File, err)
	}
	defer f.Close()
	s := &simKube{recorder: newRecorder(o.Out, o.KeepNames), known: map[uint64]bool{}, fields: map[string]int{}}
	from := bufio.NewReaderSize(f, 256<<10)
	if start, _ := from.Peek(64); bytes.HasPrefix(bytes.TrimSpace(start), []byte("{")) {
		err = s.readJSON(from)
	} else {
		err = s.read(ctx, &unpacker{from: from})
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, exitcode.Usagef("SimKube trace %s: the data is incomplete (the file is truncated)", o.File)
	case err != nil:
		return nil, exitcode.Usagef("SimKube trace %s: %w (loadgen reads version %d, as .sktrace or JSON)", o.File, err, simKubeVersion)
	case s.changes == 0:
		return nil, exitcode.Usagef("SimKube trace %s: the trace has no objects (does SimKube's config track any?)", o.File)
	}
	s.note("SimKube's times are whole seconds, so all requests of a second are at the start of that second in the recording")
	s.note("the names of resources are guesses, derived from the kinds of the objects")
	s.note("the lifecycles of pods are not imported (a scenario defines how long pods live): %d", s.lifecycles)
	var dropped []string
	for _, name := range slices.Sorted(maps.Keys(s.fields)) {
		dropped = append(dropped, fmt.Sprintf("%s (%d)", name, s.fields[name]))
	}
	if len(dropped) > 0 {
		s.note("dropped fields of the trace: %s", strings.Join(dropped, ", "))
	}
	s.from, s.to = time.Unix(s.first, 0), time.Unix(s.last, 0)
	return s.write(ctx, recording.Header{Source: fmt.Sprintf("SimKube trace, %d events", s.events)})
}

type simKube struct {
	*recorder
	known       map[uint64]bool // objects that exist so far, by hash
	first, last int64           // times of the first and the last event, in seconds since 1970
	lifecycles  int             // number of pod lifecycles in the trace
	fields      map[string]int  // number of times that each field was dropped
}

// drop counts a top-level field of the trace that the recording excludes.
func (s *simKube) drop(key string, value any) {
	switch key {
	case "version":
	case "pod_lifecycles":
		s.lifecycles += leaves(value)
	default:
		s.fields[key]++
	}
}

// leaves returns the number of elements of all lists in nested maps.
func leaves(value any) (n int) {
	switch v := value.(type) {
	case map[string]any:
		for _, of := range v {
			n += leaves(of)
		}
		return n
	case []any:
		return len(v)
	}
	return 1
}

// checkVersion returns an error if the version of the trace is not supported.
func checkVersion(version any) error {
	switch fmt.Sprint(version) {
	case fmt.Sprint(simKubeVersion):
		return nil
	case "", fmt.Sprint(nil):
		return errors.New("the version is missing or not the first field")
	}
	return fmt.Errorf("the version is %v", version)
}

// longestJSON is the maximum size of a JSON trace in bytes. A trace takes up to 30 times its size in memory.
const longestJSON = 64 << 20

// readJSON reads a JSON file. It has the same structure as the MessagePack files for the method `read`.
func (s *simKube) readJSON(from io.Reader) error {
	var file map[string]any
	limited := &io.LimitedReader{R: from, N: longestJSON}
	decoder := json.NewDecoder(limited)
	decoder.UseNumber()
	if err := decoder.Decode(&file); err != nil {
		if limited.N == 0 {
			return fmt.Errorf("the JSON is larger than %d MiB", longestJSON>>20)
		}
		return err
	}
	if err := checkVersion(file["version"]); err != nil {
		return err
	}
	events, ok := file["events"].([]any)
	if !ok && file["events"] != nil {
		return errors.New("events must be a list")
	}
	delete(file, "events")
	for _, event := range events {
		if err := s.event(event); err != nil {
			return err
		}
	}
	for key, value := range file {
		s.drop(key, value)
	}
	return nil
}

// read reads a whole MessagePack file: a map with version, config, events, index and pod_lifecycles.
func (s *simKube) read(ctx context.Context, in *unpacker) error {
	fields, err := in.mapLength()
	if err != nil {
		return err
	}
	var version any
	for range fields {
		key, err := in.value()
		if err != nil {
			return err
		}
		events := 1
		if key == "events" {
			if err := checkVersion(version); err != nil {
				return err
			}
			if events, err = in.arrayLength(); err != nil {
				return err
			}
		}
		for range events {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			value, err := in.value()
			switch {
			case err != nil:
				return err
			case key == "events":
				if err := s.event(value); err != nil {
					return err
				}
			default:
				if key == "version" {
					version = value
				}
				s.drop(fmt.Sprint(key), value)
			}
		}
	}
	return checkVersion(version)
}

func (s *simKube) event(value any) error {
	event, _ := value.(map[string]any)
	at, err := strconv.ParseInt(fmt.Sprint(event["ts"]), 10, 64)
	switch {
	case err != nil || at < 0 || at > latestSimKube:
		return fmt.Errorf("event %d has no valid ts", s.events+1)
	case s.events > 0 && at < s.last:
		return fmt.Errorf("event %d is earlier than the previous event", s.events+1)
	case s.events == 0:
		s.first = at
	}
	s.events, s.last = s.events+1, at
	applied, _ := event["applied_objs"].([]any)
	for _, object := range applied {
		s.add(at, object, false)
	}
	for key := range event {
		if !slices.Contains([]string{"ts", "applied_objs", "deleted_objs"}, key) {
			s.fields["events[]."+key]++
		}
	}
	deleted, _ := event["deleted_objs"].([]any)
	for _, object := range deleted {
		s.add(at, object, true)
	}
	return nil
}

// latestSimKube is the latest valid time in a trace, in seconds since 1970. Later times overflow int64 in microseconds.
const latestSimKube = math.MaxInt64 / 1_000_000

// add converts an applied or deleted object to a request.
func (s *simKube) add(at int64, value any, deleted bool) {
	object, _ := value.(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	kind, _ := object["kind"].(string)
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	apiVersion, _ := object["apiVersion"].(string)
	gv, err := schema.ParseGroupVersion(apiVersion)
	if kind == "" || name == "" || err != nil || gv.Version == "" {
		s.change(change{at: at * 1e6, reason: ofNoKind})
		return
	}
	id := idOf([]byte(apiVersion + "/" + kind + "/" + namespace + "/" + name))
	verb, code := "update", 200
	switch {
	case deleted:
		verb = "delete"
		delete(s.known, id)
	case !s.known[id]:
		verb, code = "create", 201
		s.known[id] = true
	}
	resource, _ := meta.UnsafeGuessKindToResource(gv.WithKind(kind))
	size := 0
	if !deleted {
		text, _ := json.Marshal(object)
		size = len(text)
	}
	s.change(change{
		at: at * 1e6, actor: "simkube", verb: verb, group: gv.Group, version: cmp.Or(gv.Version, "v1"), resource: resource.Resource,
		namespace: namespace, name: name, code: code, size: size,
	})
}
