package node

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// overdueAfter is the time after which a waiting pod counts as overdue: three times the pod startup SLO of 5 s.
const overdueAfter = 15 * time.Second

// overdue records when each pod began to wait: either to become Ready, or to disappear after its node deleted it. The
// zero value is ready to use.
type overdue struct {
	mu    sync.Mutex
	since map[types.UID]time.Time
}

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

func (o *overdue) countNow() int64 { return int64(o.count(time.Now())) }

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
