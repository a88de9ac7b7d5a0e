package cluster

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Waiting reports a long wait, but not a short one.
func TestLongWaitsAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		tell := func(line string) { told = append(told, line) }
		done := Waiting(tell, "a quick answer")
		time.Sleep(firstNotice - time.Millisecond)
		done()
		done = Waiting(tell, "the cluster to answer")
		time.Sleep(firstNotice + noticeInterval + time.Millisecond)
		done()
		want := []string{"waiting for the cluster to answer, 3s so far", "waiting for the cluster to answer, 13s so far"}
		if !slices.Equal(told, want) {
			t.Errorf("reported %q, want %q", told, want)
		}
	})
}
