package node

import (
	"fmt"
	"time"
)

// announce posts an Event about a container. If the pod already has the same Event, announce increments the count of
// that Event instead.
func (l *lifecycle) announce(c *containerState, kind, reason, message string) {
	l.announcePod(c.field+"{"+c.spec.Name+"}", kind, reason, message)
}

func (l *lifecycle) announcePod(fieldPath, kind, reason, message string) {
	k := l.k
	if !k.plan.postsEvents() {
		return
	}
	now := l.now()
	name, count := l.events.observe(fieldPath+"\x00"+reason+"\x00"+message, now)
	if count == 0 {
		return
	}
	namespace := l.p.namespace
	if count > 1 {
		first := *name
		patch := fmt.Appendf(nil, `{"count":%d,"lastTimestamp":%q}`, count, now.UTC().Format(time.RFC3339))
		k.late(l.life, func() {
			l.life.events.add(func() {
				_, _ = k.link.do(l.life.ctx, call{ // errors are counted
					verb: "patch", resource: "events", path: "/api/v1/namespaces/" + namespace + "/events/" + first, body: patch,
				})
			})
		})
		return
	}
	ref := referenceTo(l.model.pod)
	ref.FieldPath = fieldPath
	// The time is part of the Event's name, so the time must be unique.
	called, body, err := k.newEvent("kubelet", ref, now.Add(time.Duration(l.events.posted)), kind, reason, message)
	if err != nil {
		k.plan.Log("node %s: %v", k.name, err)
		return
	}
	*name = called
	if l.unposted = append(l.unposted, body); len(l.unposted) > 1 { // the post that is already queued will send it
		return
	}
	k.late(l.life, func() {
		l.life.events.add(func() {
			k.mu.Lock()
			bodies := l.unposted
			l.unposted = nil
			k.mu.Unlock()
			k.postEvents(l.life, namespace, bodies, 1)
		})
	})
}

// A kubelet limits the rate of its Events about one object (client-go's tools/record): eventBurst Events, and then one
// Event per eventRefill.
const (
	eventBurst  = 25
	eventRefill = 5 * time.Minute
)

// eventLog aggregates a pod's Events as client-go's event correlator does. If an Event repeats, the node increments the
// count of the posted Event. After eventBurst Events, it posts only one Event per eventRefill.
type eventLog struct {
	seen    map[string]*loggedEvent
	posted  int
	used    float64 // number of Events that count against the burst now
	updated time.Time
}

type loggedEvent struct {
	name  string
	count int
}

// observe counts an Event with this key. It returns how often the Event was observed, or 0 if the rate limit drops it.
// name points to the Event's name, which the caller sets after the first post.
func (e *eventLog) observe(key string, now time.Time) (name *string, count int) {
	if e.seen == nil {
		e.seen = map[string]*loggedEvent{}
	}
	if !e.updated.IsZero() {
		e.used = max(0, e.used-now.Sub(e.updated).Seconds()/eventRefill.Seconds())
	}
	e.updated = now
	one := e.seen[key]
	if one == nil {
		one = &loggedEvent{}
		e.seen[key] = one
	}
	one.count++
	if e.used+1 > eventBurst {
		return nil, 0
	}
	e.used++
	if one.name == "" && one.count > 1 { // the rate limit dropped the earlier ones
		one.count = 1
	}
	if one.count == 1 {
		e.posted++
	}
	return &one.name, one.count
}
