package node

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
)

// draw is a number from 0 to 1 that depends on the seed and what only: the same pod starts as fast in every run.
func draw(seed int64, what ...string) float64 {
	h := fnv.New64a()
	for _, s := range what {
		_, _ = h.Write([]byte(s)) // cannot fail
		_, _ = h.Write([]byte{0})
	}
	// FNV leaves similar names close together: a generator seeded by it does not.
	x := rand.NewPCG(uint64(seed), h.Sum64()).Uint64()
	return (float64(x>>11) + 0.5) / (1 << 53)
}

// deal gives each of count nodes one of len(weights) kinds: as many of each as its weight asks for, to within one,
// in an order drawn by the seed.
func deal(weights []float64, count int, seed int64) []int {
	total := 0.0
	for _, w := range weights {
		total += w
	}
	dealt := make([]int, len(weights))
	out := make([]int, count)
	for i := range out {
		best, owed := 0, -1.0
		for j, w := range weights {
			if o := w/total*float64(i+1) - float64(dealt[j]); o > owed {
				best, owed = j, o
			}
		}
		dealt[best]++
		out[i] = best
	}
	rng := rand.New(rand.NewPCG(uint64(seed), 0x5a9e))
	rng.Shuffle(count, func(i, j int) { out[i], out[j] = out[j], out[i] })
	return slices.Clip(out)
}
