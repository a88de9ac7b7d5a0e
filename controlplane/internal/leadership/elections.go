// Package leadership finds the leaders of a plane. Roles finds the current leaders by calling the components. Elections
// reads the time of each election from the logs of the components, because a log has the exact time and reading it adds
// no load to the measured components.
package leadership

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/process"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// Elections follows the logs of the components of a plane that elect a leader.
type Elections []*Log

// FollowAll returns the Elections of a plane. It reads the logs from their current ends.
func FollowAll(cfg control.Config, layout topology.Layout) (all Elections) {
	for _, name := range cfg.Components() {
		if kind := control.ComponentKind(name); control.KindOf(kind).Leads {
			all = append(all, Follow(name, kind, layout.Log(name)))
		}
	}
	return all
}

// pollInterval is the interval at which Report reads the logs. Report reports an event up to this long after the event,
// but with the time of the log line.
const pollInterval = 50 * time.Millisecond

// Report calls `report` for each election until ctx ends.
func (all Elections) Report(ctx context.Context, report func(control.Event)) {
	wait.UntilWithContext(ctx, func(context.Context) {
		for _, log := range all {
			for _, event := range log.Next() {
				report(event)
			}
		}
	}, pollInterval)
}

// The messages that components log when they are elected.
const (
	etcdElected  = "became leader at term " // etcd's message, in raft.go of go.etcd.io/raft
	leaseElected = "Successfully acquired lease"
)

// find returns the election that a log line of a component reports. found is false if the line reports no election. The
// event's time is zero if the line has no time.
func find(kind, line string) (event control.Event, found bool) {
	switch {
	case kind == control.KindEtcd:
		_, term, found := strings.Cut(line, etcdElected)
		if !found {
			return event, false
		}
		end := strings.IndexFunc(term, func(r rune) bool { return r < '0' || r > '9' })
		if end >= 0 {
			term = term[:end]
		}
		return control.Event{Time: LineTime(line, time.Now()), Kind: control.EventEtcdLeader, Detail: "term " + term}, true
	case elected(kind):
		if !strings.Contains(line, leaseElected) {
			return event, false
		}
		return control.Event{Time: LineTime(line, time.Now()), Kind: control.EventLease, Detail: "acquired the lease " + kind}, true
	}
	return event, false
}

// LineTime returns the time that a component wrote at the beginning of a log line, or zero if the line has no time.
// klog's time, as in "I1121 14:33:22.123456", is local and has no year. LineTime assumes the current year, or the
// previous year if the time would otherwise be more than 180 days after now.
func LineTime(line string, now time.Time) time.Time {
	if strings.HasPrefix(line, "{") {
		return entryTime(line)
	}
	const form = "0102 15:04:05.000000"
	if len(line) < 1+len(form) {
		return time.Time{}
	}
	t, err := time.ParseInLocation("2006 "+form, fmt.Sprint(now.Year(), " ", line[1:1+len(form)]), now.Location())
	switch {
	case err != nil:
		return time.Time{}
	case t.Sub(now) > 180*24*time.Hour:
		return t.AddDate(-1, 0, 0)
	}
	return t
}

// entryTime returns the time of a JSON log entry. etcd writes the time in RFC 3339 format, and Kubernetes
// (--logging-format=json) in milliseconds.
func entryTime(line string) (at time.Time) {
	var entry struct {
		Time json.RawMessage `json:"ts"`
	}
	if json.Unmarshal([]byte(line), &entry) != nil || json.Unmarshal(entry.Time, &at) == nil {
		return at
	}
	var milliseconds float64
	if json.Unmarshal(entry.Time, &milliseconds) != nil {
		return at
	}
	return time.UnixMicro(int64(milliseconds * 1000))
}

// Log reads the log of one component while the component writes to it.
type Log struct {
	component, kind, path string
	offset                int64
	part                  []byte // the beginning of a line whose end is not written yet
}

// Follow returns a Log that starts reading at the current end of a component's log file. The file need not exist yet.
func Follow(component, kind, path string) *Log {
	l := &Log{component: component, kind: kind, path: path}
	if info, err := os.Stat(path); err == nil {
		l.offset = info.Size()
	}
	return l
}

// Next returns the elections that were logged since the last call of Next.
func (l *Log) Next() []control.Event {
	var events []control.Event
	for _, line := range l.lines() {
		if event, found := find(l.kind, line); found {
			event.Component = l.component
			events = append(events, event)
		}
	}
	return events
}

// tailBytes is the maximum number of bytes that a Log reads at a time. maxLine is the maximum number of bytes that a
// Log keeps of an incomplete line.
const (
	tailBytes = 256 << 10
	maxLine   = 64 << 10
)

func (l *Log) lines() (lines []string) {
	info, err := os.Stat(l.path)
	if err == nil && info.Size() < l.offset { // rotated
		lines = l.read(process.RotatedLog(l.path))
		l.offset = 0
	}
	if err == nil && info.Size() > l.offset {
		lines = append(lines, l.read(l.path)...)
	}
	return lines
}

// read returns the lines that end after l.offset in a file, and advances l.offset.
func (l *Log) read(path string) (lines []string) {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	for {
		data, err := io.ReadAll(io.NewSectionReader(f, l.offset, tailBytes))
		if err != nil || len(data) == 0 {
			return lines
		}
		l.offset += int64(len(data))
		l.part = append(l.part, data...)
		for {
			line, rest, whole := bytes.Cut(l.part, []byte("\n"))
			if !whole {
				break
			}
			lines = append(lines, string(line))
			l.part = rest
		}
		l.part = bytes.Clone(l.part[:min(len(l.part), maxLine)])
	}
}
