package importer

import (
	"slices"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
)

// The selectors of a range select each of its objects exactly once, and no others.
func TestRangesSelectTheirObjects(t *testing.T) {
	const iterations = 7
	for _, replicas := range []int{1, 2, 5} {
		for _, step := range []int{1, 3} {
			total := iterations * replicas
			for from := range total {
				for n := 1; from+n <= total; n++ {
					times := make([]int, total)
					for _, r := range rangesOf(from, n, replicas, step) {
						r.labels = map[string]string{jobLabel: "j"}
						s, err := labels.Parse(r.text())
						if err != nil {
							t.Fatalf("%s: %v", r.text(), err)
						}
						for i := range total {
							object := labels.Set{jobLabel: "j", iterationLabel: strconv.Itoa(i / replicas * step), replicaLabel: strconv.Itoa(i%replicas + 1)}
							if s.Matches(object) {
								times[i]++
							}
						}
					}
					for i, got := range times {
						want := 0
						if i >= from && i < from+n {
							want = 1
						}
						if got != want {
							t.Fatalf("%d from %d on, of %d iterations with %d replicas: object %d is selected %d times, want %d", n, from, iterations, replicas, i, got, want)
						}
					}
				}
			}
		}
	}
}

// The steps of an incremental load are the same as in kube-burner.
func TestStepsOfIncrementalLoads(t *testing.T) {
	for _, c := range []struct{ got, want []int }{
		{endsOf(5, 20, linearIncrease(5, 20, 5, 3)), []int{5, 10, 15, 20}},
		{endsOf(5, 20, linearIncrease(5, 20, 5, 4)), []int{5, 9, 13, 17, 20}},
		{endsOf(2, 7, linearIncrease(2, 7, 3, 0)), []int{2, 5, 7}},
		{endsOf(10, 20, linearIncrease(10, 20, 10, 5)), []int{10, 12, 14, 16, 18, 20}},
		{endsOf(4, 4, linearIncrease(4, 4, 1, 3)), []int{4}},
		{endsOf(1, 3, linearIncrease(1, 3, 0, 0)), []int{1, 2, 3}},
		{endsOf(1, 40, exponentialIncrease(1, 40, 2, 0, 0)), []int{1, 5, 13, 29, 40}},
		{endsOf(2, 40, exponentialIncrease(2, 40, 2, 0, 3)), []int{2, 4, 6, 10, 18, 34, 40}},
		{endsOf(1, 20, exponentialIncrease(1, 20, 3, 5, 0)), []int{1, 6, 11, 16, 20}},
		{endsOf(3, 1_000_000, exponentialIncrease(3, 1_000_000, 10, 0, 1)), []int{3, 33, 333, 3333, 33333, 333333, 1_000_000}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("steps to %v, want %v", c.got, c.want)
		}
	}
}
