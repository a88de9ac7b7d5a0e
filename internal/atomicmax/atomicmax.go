// Package atomicmax keeps maximum values that several goroutines update.
package atomicmax

// Raise raises v, an *atomic.Int64 or *atomic.Uint64, to the number `to`. It does nothing if v is already at least as
// high.
func Raise[N int64 | uint64](v value[N], to N) {
	for old := v.Load(); to > old && !v.CompareAndSwap(old, to); old = v.Load() {
	}
}

type value[N int64 | uint64] interface {
	Load() N
	CompareAndSwap(old, to N) bool
}
