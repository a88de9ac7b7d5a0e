package fsync

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stormglass/stormglass/controlplane/control"
)

type gate struct {
	mu       sync.Mutex
	listener int // the seccomp listener; -1 before the first call of set
	delay    Delay
	random   *rand.Rand
	waiting  map[uint64]*time.Timer // timers of the delayed calls, by notification ID
	stats    Stats
}

// set delays all calls that begin later. Calls that are already waiting keep their delay.
func (g *gate) set(d Delay) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listener < 0 {
		fd, err := installOnAllThreads()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		g.listener = fd
		go g.serve(fd)
	}
	g.delay = d
	g.random = rand.New(rand.NewPCG(uint64(d.Seed), 0))
	return nil
}

func installOnAllThreads() (int, error) {
	arch, ok := auditArch()
	if !ok {
		return -1, fmt.Errorf("controlplane has no seccomp filter for %s", runtime.GOARCH)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return install(syncFilter(arch), unix.SECCOMP_FILTER_FLAG_TSYNC|unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH)
}

func (g *gate) clear() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.delay = Delay{}
	for id := range g.waiting {
		g.release(id)
	}
}

func (g *gate) snapshot() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.stats
	s.Waiting = int64(len(g.waiting))
	return s
}

func (g *gate) serve(listener int) {
	for {
		n, err := receive(listener)
		if err != nil {
			// A lost listener would make the callers wait for ever. The kernel documents no such error.
			panic(fmt.Sprintf("fsync: the seccomp listener is lost: %v", err))
		}
		g.hold(n.id, int(int32(n.args[0])))
	}
}

// hold delays a call on a file descriptor and then continues the call.
func (g *gate) hold(id uint64, fd int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stats.Seen++
	if g.delay.Delay == 0 || (g.delay.Files != control.FaultFilesAll && !isWAL(pathOf(fd))) {
		proceed(g.listener, id)
		return
	}
	g.stats.Delayed++
	wait := control.Jittered(g.delay.Delay, g.delay.Jitter, g.random)
	g.waiting[id] = time.AfterFunc(wait, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.release(id)
	})
}

// release continues the call with this notification ID if the call is still waiting. The caller holds mu.
func (g *gate) release(id uint64) {
	timer, ok := g.waiting[id]
	if !ok {
		return
	}
	timer.Stop()
	delete(g.waiting, id)
	proceed(g.listener, id)
}

// pathOf returns the path of a file descriptor, or "" if the descriptor is not open. In that case, the delayed call
// fails by itself.
func pathOf(fd int) string {
	path, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	return path
}
