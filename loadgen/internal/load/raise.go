package load

import "sync/atomic"

// Raise sets v to the value of to, unless v is already greater.
func Raise(v *atomic.Uint64, to uint64) {
	for old := v.Load(); to > old && !v.CompareAndSwap(old, to); old = v.Load() {
	}
}
