package node

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// unreadyAfter is how long a pod may be on a node before it counts as not Ready: three times the objective of pod startup.
const unreadyAfter = 15 * time.Second

// unready holds since when pods on the nodes are not Ready. The zero value is ready to use.
type unready struct {
	mu    sync.Mutex
	since map[types.UID]time.Time
}

// saw notes whether a pod on a node should be Ready and is not.
func (u *unready) saw(pod types.UID, waits bool, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, known := u.since[pod]
	switch {
	case !waits:
		delete(u.since, pod)
	case !known:
		if u.since == nil {
			u.since = map[types.UID]time.Time{}
		}
		u.since[pod] = now
	}
}

// count returns how many pods have not been Ready for longer than unreadyAfter.
func (u *unready) count(now time.Time) (n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, since := range u.since {
		if now.Sub(since) > unreadyAfter {
			n++
		}
	}
	return n
}
