package objects

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// tail keeps the last line of a command that writes much to both of its streams at the same time.
func TestTailHasTheLastLine(t *testing.T) {
	var end tail
	var streams sync.WaitGroup
	for range 2 {
		streams.Go(func() {
			for i := range 2000 {
				fmt.Fprintf(&end, "line %d of many\n", i)
			}
		})
	}
	streams.Wait()
	fmt.Fprint(&end, strings.Repeat("x", 10), "\nno such file\n\n")
	if got := end.lastLine(); got != "no such file" || len(end.text) > maxOutput {
		t.Errorf("last line %q, with %d bytes kept", got, len(end.text))
	}
}
