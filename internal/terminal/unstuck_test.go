package terminal

import (
	"fmt"
	"io"
	"testing"
	"time"
)

func TestUnstuckWriterDropsTextUntilItIsRead(t *testing.T) {
	read, write := io.Pipe()
	w := &unstuck{w: write, after: time.Millisecond}
	for range 3 {
		if n, err := fmt.Fprint(w, "stuck"); n != 5 || err != nil {
			t.Fatalf("wrote %d bytes, %v", n, err)
		}
	}
	stuck := w.stuck
	if stuck == nil {
		t.Fatal("a write without a reader is not detected as stuck")
	}
	text := make([]byte, 5)
	if _, err := io.ReadFull(read, text); err != nil || string(text) != "stuck" {
		t.Fatalf("%q, %v", text, err)
	}
	if err := <-stuck; err != nil {
		t.Fatal(err)
	}
	go fmt.Fprint(w, "read")
	if _, err := io.ReadFull(read, text[:4]); err != nil || string(text[:4]) != "read" {
		t.Errorf("%q, %v", text[:4], err)
	}
}
