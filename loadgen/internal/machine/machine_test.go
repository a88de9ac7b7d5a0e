package machine

import (
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
)

// On a machine with two processors, in a phase of 10 s, Busy returns the reason above the limits, and "" below them.
func TestBusyPastItsBounds(t *testing.T) {
	for what, c := range map[string]struct {
		m    result.Machine
		want string
	}{
		"only the run":              {result.Machine{BusySeconds: 20, OwnSeconds: 19.5}, ""},
		"a small neighbour":         {result.Machine{BusySeconds: 10, OwnSeconds: 7}, ""},
		"a busy loop":               {result.Machine{BusySeconds: 14, OwnSeconds: 4}, "other programs used 1.0 of 2 processors"},
		"a neighbour, nothing idle": {result.Machine{BusySeconds: 19, OwnSeconds: 17}, "other programs used 0.2 of 2 processors, and none was idle"},
		"nothing idle by steal":     {result.Machine{BusySeconds: 17.5, OwnSeconds: 15.5, StealSeconds: 0.8}, "other programs used 0.2 of 2 processors, and none was idle"},
		"a hypervisor":              {result.Machine{BusySeconds: 4, OwnSeconds: 4, StealSeconds: 1.2}, "the hypervisor took 6% of the processors' time"},
		"little memory":             {result.Machine{BusySeconds: 4, OwnSeconds: 4, MemoryWaitSeconds: new(1.5)}, "processes waited for memory 15% of the time"},
		"all at once": {result.Machine{BusySeconds: 14, OwnSeconds: 4, StealSeconds: 2, MemoryWaitSeconds: new(2.)},
			"other programs used 1.0 of 2 processors and the hypervisor took 10% of the processors' time and processes waited for memory 20% of the time"},
		"a disk is a fact":        {result.Machine{BusySeconds: 4, OwnSeconds: 4, IOWaitSeconds: new(9.)}, ""},
		"a client":                {result.Machine{BusySeconds: 14, OwnSeconds: 4, ClientSeconds: new(12.)}, ""},
		"a client and the loop":   {result.Machine{BusySeconds: 20, OwnSeconds: 4, ClientSeconds: new(6.)}, "other programs used 1.0 of 2 processors"},
		"a client that computes":  {result.Machine{BusySeconds: 14, OwnSeconds: 4, ClientSeconds: new(0.2)}, "other programs used 1.0 of 2 processors"},
		"counters that step back": {result.Machine{BusySeconds: 4, OwnSeconds: 5}, ""},
	} {
		f, ok := Of(&c.m, 10, 2, true)
		if got := f.Busy(); !ok || got != c.want {
			t.Errorf("%s: %v, %q, want %q", what, ok, got, c.want)
		}
	}
}

// If the control plane may be one of the other programs, Others is nil, but the time that the hypervisor took and the
// waits for memory are known.
func TestOtherProgramsOfAUsersCluster(t *testing.T) {
	f, _ := Of(&result.Machine{BusySeconds: 18, OwnSeconds: 4, StealSeconds: 2}, 10, 2, false)
	if got := f.Busy(); f.Others != nil || got != "the hypervisor took 10% of the processors' time" {
		t.Errorf("%v, %q", f.Others, got)
	}
}

// If the number of processors was not recorded, Of uses the number in the run's host. Without any of these numbers, or
// without measurements, Of returns false.
func TestMachineOfOldRuns(t *testing.T) {
	for what, known := range map[string]bool{"nothing": false, "no length": false, "no processors": false, "the host's": true} {
		m, seconds, processors := &result.Machine{BusySeconds: 14, OwnSeconds: 4}, 10., 2
		switch what {
		case "nothing":
			m = nil
		case "no length":
			seconds = 0
		case "no processors":
			processors = 0
		}
		if f, ok := Of(m, seconds, processors, true); ok != known || f.Busy() != "" != known {
			t.Errorf("%s: %v, %q", what, ok, f.Busy())
		}
	}
}

// Notes also describes a machine that was not busy, with the rate of other clients.
func TestNotesTellClients(t *testing.T) {
	f, _ := Of(&result.Machine{BusySeconds: 5, OwnSeconds: 4, ClientRequests: new(310.), ClientSeconds: new(1.), IOWaitSeconds: new(1.), CPUWaitSeconds: new(4.)}, 10, 2, true)
	notes := strings.Join(f.Notes(), "; ")
	for _, want := range []string{"0.5 of 2 processors were in use", "other programs used 0.0 of 2", "other clients sent 31 requests/s", "for 40% of the time, a process waited for a CPU", "for 10% of the time, a process waited for a disk"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes %q, want %q", notes, want)
		}
	}
}

func TestLinesNameBusyPhases(t *testing.T) {
	phases := []result.Phase{{Name: "calm", Machine: &result.Machine{}}, {Name: "under", Machine: &result.Machine{Busy: "x"}}, {Name: "after"}}
	if got := Lines(phases); !slices.Equal(got, []string{"x in phase under"}) {
		t.Errorf("%q", got)
	}
}
