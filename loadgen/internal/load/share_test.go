package load

import "testing"

// Every number is in exactly one share.
func TestSharesDivideNumbers(t *testing.T) {
	for _, of := range []int{1, 2, 3, 4, 7} {
		for n := range 30 {
			owners := make([]int, n)
			for index := range of {
				s := Share{Index: index, Of: of}
				for i := range s.Part(n) {
					if at := s.Number(i); at < n {
						owners[at]++
					} else {
						t.Errorf("%d of %d: number %d of %d", index, of, at, n)
					}
				}
			}
			for at, count := range owners {
				if count != 1 {
					t.Errorf("%d shares: number %d of %d is in %d of them", of, at, n, count)
				}
			}
		}
	}
	if whole := (Share{}); whole.Part(9) != 9 || whole.Number(4) != 4 || whole.Step() != 1 || !whole.Whole() {
		t.Errorf("the zero share is not the whole: %+v", whole)
	}
}
