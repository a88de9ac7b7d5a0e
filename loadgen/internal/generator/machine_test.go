package generator

import (
	"os/exec"
	"runtime"
	"testing"
	"time"
)

// TestMachineTellsOwnWork: the processor time of this process and its descendants is its own time, and part of the
// machine's busy time.
func TestMachineTellsOwnWork(t *testing.T) {
	if runtime.GOOS != "linux" {
		if MeasureMachine()() != nil {
			t.Error("MeasureMachine returns a measurement on an unsupported system")
		}
		return
	}
	end := MeasureMachine()
	if err := exec.CommandContext(t.Context(), "sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done").Run(); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(300 * time.Millisecond); time.Now().Before(until); {
		_ = until.String()
	}
	m := end()
	if m == nil {
		t.Fatal("not measured")
	}
	if m.OwnSeconds <= 0.1 || m.BusySeconds < m.OwnSeconds-0.1 {
		t.Errorf("%+v", m)
	}
}
