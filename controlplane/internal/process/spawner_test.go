package process

import (
	"os"
	"path/filepath"
	"testing"
)

// A plane that is under faults for a day restarts its components some thousand times. The Spawner must not keep the
// ended children.
func TestSpawnerDropsEndedChildren(t *testing.T) {
	s, err := NewSpawner()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 5 {
		c, err := s.Start(Spec{Name: "short", Path: "/bin/sh", Args: []string{"sh", "-c", "exit"}, Env: os.Environ(), Log: filepath.Join(t.TempDir(), "log")})
		if err != nil {
			t.Fatal(err)
		}
		<-c.Done()
	}
	if n := len(s.children); n > 1 {
		t.Errorf("the Spawner keeps %d of 5 children that have ended", n)
	}
}
