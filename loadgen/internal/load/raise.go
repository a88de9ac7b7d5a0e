package load

import "sync/atomic"

// Raise raises v to the number `to`. It does nothing if v is already at least as high.
func Raise(v *atomic.Uint64, to uint64) {
	for old := v.Load(); to > old && !v.CompareAndSwap(old, to); old = v.Load() {
	}
}
