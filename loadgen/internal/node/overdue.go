package node

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// overdueAfter is how long a pod may wait before it is overdue: three times the pod startup objective of 5 s.
const overdueAfter = 15 * time.Second

// overdue records since when pods have waited: to become Ready on a node, or to disappear after the node has deleted
// them. The zero value is ready to use.
type overdue struct {
	mu    sync.Mutex
	since map[types.UID]time.Time
}

// saw records whether a pod waits.
func (o *overdue) saw(pod types.UID, waits bool, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, known := o.since[pod]
	switch {
	case !waits:
		delete(o.since, pod)
	case !known:
		if o.since == nil {
			o.since = map[types.UID]time.Time{}
		}
		o.since[pod] = now
	}
}

// count returns how many pods have waited for longer than overdueAfter.
func (o *overdue) count(now time.Time) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, since := range o.since {
		if now.Sub(since) > overdueAfter {
			n++
		}
	}
	return n
}
