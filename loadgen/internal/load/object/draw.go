package object

import (
	"hash/fnv"
	"math/bits"
	"slices"
)

// stream is a sequence of random numbers for one purpose of one load. Each number is a pure function of the seed and
// of its index (splitmix64).
type stream uint64

func newStream(seed int64, load, purpose string) stream {
	h := fnv.New64a()
	h.Write([]byte(load + "\x00" + purpose)) // never fails
	return stream(h.Sum64() ^ uint64(seed)*0x9e3779b97f4a7c15)
}

func (s stream) at(n int64) uint64 {
	z := uint64(s) + uint64(n+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// among returns the n-th random number as an integer from 0 to k-1.
func (s stream) among(n int64, k int) int {
	hi, _ := bits.Mul64(s.at(n), uint64(k))
	return int(hi)
}

// unit returns the n-th random number as a float that is at least 0 and less than 1.
func (s stream) unit(n int64) float64 { return float64(s.at(n)>>11) / (1 << 53) }

// shares are the cumulative sums of weights, scaled so that the last sum is 1. They divide the range from 0 to 1.
type shares []float64

func newShares(weights []float64) shares {
	s := make(shares, len(weights))
	var sum float64
	for i, w := range weights {
		sum += w
		s[i] = sum
	}
	for i := range s {
		s[i] /= sum
	}
	return s
}

func even(k int) shares { return newShares(slices.Repeat([]float64{1}, k)) }

// zipf returns k shares with sizes in proportion to 1, 1/2, 1/3, ..., which are typical of namespaces in clusters.
func zipf(k int) shares {
	weights := make([]float64, k)
	for i := range weights {
		weights[i] = 1 / float64(i+1)
	}
	return newShares(weights)
}

// pick returns the index of the share that contains u. u is at least 0 and less than 1.
func (s shares) pick(u float64) int {
	if len(s) == 1 {
		return 0
	}
	i, found := slices.BinarySearch(s, u)
	if found { // a share includes its lower bound, but not its upper bound
		i++
	}
	return min(i, len(s)-1)
}
