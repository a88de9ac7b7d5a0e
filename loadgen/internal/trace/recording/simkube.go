package recording

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/trace"
)

// SimKubeOptions configure a recording of a SimKube trace. File and Out are required.
type SimKubeOptions struct {
	File, Out string
	KeepNames bool
}

// simKubeVersion is the supported version of SimKube's trace format (sk-core/src/trace in release 2.7).
const simKubeVersion = 2

// longestSimKube is the maximum size of a trace in bytes. It limits the time for reading a sparse file.
const longestSimKube = 4 << 30

// SimKube converts a SimKube trace to a Stormglass trace. SimKube records objects that were applied or deleted; the
// first apply of an object becomes a create, later ones become updates. If the file is invalid, SimKube returns a usage
// error.
func SimKube(ctx context.Context, o SimKubeOptions) (*Recording, error) {
	f, err := userfile.Open(o.File, longestSimKube)
	if err != nil {
		return nil, exitcode.Usagef("SimKube trace %s: %w", o.File, err)
	}
	defer f.Close()
	s := &simKube{recorder: newRecorder(o.Out, o.KeepNames), known: map[uint64]bool{}, in: unpacker{from: bufio.NewReaderSize(f, 256<<10)}}
	err = s.read(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, exitcode.Usagef("SimKube trace %s: the data is incomplete (the file is truncated)", o.File)
	case err != nil:
		return nil, exitcode.Usagef("SimKube trace %s: %w (loadgen reads .sktrace files of version %d)", o.File, err, simKubeVersion)
	case s.events == 0:
		return nil, exitcode.Usagef("SimKube trace %s: the trace has no events", o.File)
	}
	if s.skipped > 0 {
		s.note("%d objects have no kind or name and are left out", s.skipped)
	}
	s.note("SimKube's times are whole seconds, so all requests of a second are placed at the start of that second")
	s.note("the names of resources are guessed from the kinds of the objects")
	s.note("the lifecycles of pods are not imported (a scenario defines how long pods live)")
	s.from, s.to = time.Unix(s.first, 0), time.Unix(s.last, 0)
	return s.write(ctx, trace.Header{Source: fmt.Sprintf("SimKube trace, %d events", s.events)})
}

type simKube struct {
	*recorder
	in          unpacker
	known       map[uint64]bool // existing objects, by hash
	first, last int64           // seconds since 1970
	skipped     int64
}

// read reads the whole file: a map with version, config, events, index and pod_lifecycles.
func (s *simKube) read(ctx context.Context) error {
	fields, err := s.in.mapLength()
	if err != nil {
		return err
	}
	version := false
	for range fields {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		key, err := s.in.value()
		if err != nil {
			return err
		}
		if key == "events" {
			if !version {
				return errors.New("the version must be the first field")
			}
			if err := s.readEvents(ctx); err != nil {
				return err
			}
			continue
		}
		value, err := s.in.value()
		if err != nil {
			return err
		}
		if key == "version" {
			if version = value == int64(simKubeVersion); !version {
				return fmt.Errorf("the version is %v", value)
			}
		}
	}
	return nil
}

func (s *simKube) readEvents(ctx context.Context) error {
	n, err := s.in.arrayLength()
	if err != nil {
		return err
	}
	for range n {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		value, err := s.in.value()
		if err != nil {
			return err
		}
		event, _ := value.(map[string]any)
		at, ok := event["ts"].(int64)
		if !ok {
			return fmt.Errorf("event %d has no ts", s.events+1)
		}
		if s.events > 0 && at < s.last {
			return fmt.Errorf("event %d is earlier than the previous event", s.events+1)
		}
		if s.events == 0 {
			s.first = at
		}
		s.events, s.last = s.events+1, at
		for _, list := range []struct {
			key     string
			deleted bool
		}{{"applied_objs", false}, {"deleted_objs", true}} {
			objects, _ := event[list.key].([]any)
			for _, object := range objects {
				s.add(at, object, list.deleted)
			}
		}
	}
	return nil
}

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
		s.skipped++
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
