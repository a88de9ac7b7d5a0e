// Package machine takes the facts of the generator's machine in a phase, and knows the bounds past which a time was measured on a
// busy machine. Runs, gates, comparisons and capacity searches judge by it alone. It is pure.
package machine

import (
	"fmt"
	"strings"

	"github.com/stormglass/stormglass/loadgen/result"
)

// The bounds past which a machine is busy, as shares.
const (
	// MuchOther of all processor time, used by other programs: on two processors 0.4 of them. The scheduler of Linux gives the
	// run less than it asks for in turns of milliseconds.
	MuchOther = 0.20
	// SomeOther is enough where the machine is Full: nothing idle is left to make up for it. Pairs are thrown away past it on any
	// machine (`ab --throw-other`), as they look for changes of 5%.
	SomeOther = 0.05
	// Full is the share of all processor time in use, stolen time included, past which threads that are ready to run wait.
	Full = 0.90
	// Steal of all processor time, taken by the hypervisor: it stops a processor in the midst of a request.
	Steal = 0.05
	// Memory of the time in which some process waited for memory (PSI "some"): reclaim stops every process that allocates, and programs are
	// read from the disk again.
	Memory = 0.10
	// leastClients is the rate of requests below which other clients are no fact to tell.
	leastClients = 1.0
)

// Facts describe a machine in a phase. Rates and processors are means over the phase.
type Facts struct {
	Processors int
	Used       float64 // processors in use, by any program
	Stolen     float64 // processors that the hypervisor took
	// Others are the processors that other programs used, without the clients' part; nil: the control plane may be among them.
	Others *float64
	// Clients is the rate of requests that other clients sent, per second; nil: not known.
	Clients *float64
	// Memory and IO are the shares of the time in which some process waited for memory, or for a disk; nil: not known. A disk
	// keeps etcd waiting too, so IO is a fact and no bound.
	Memory, IO *float64
}

// Of takes the facts from what was measured in that many seconds. ours says that the generator started all of the control plane.
// processors is the number of the host, for a run of old that did not record it with the machine. False: nothing is known.
func Of(m *result.Machine, seconds float64, processors int, ours bool) (f Facts, ok bool) {
	if m == nil || seconds <= 0 {
		return f, false
	}
	if f.Processors = m.Processors; f.Processors == 0 {
		f.Processors = processors
	}
	if f.Processors <= 0 {
		return f, false
	}
	per := func(v *float64) *float64 {
		if v == nil {
			return nil
		}
		return new(*v / seconds)
	}
	f.Used, f.Stolen = m.BusySeconds/seconds, m.StealSeconds/seconds
	f.Memory, f.IO, f.Clients = per(m.MemoryWaitSeconds), per(m.IOWaitSeconds), per(m.ClientRequests)
	if ours {
		others := max(0, m.BusySeconds-m.OwnSeconds) / seconds
		if m.ClientSeconds != nil {
			others = max(0, others-*m.ClientSeconds/seconds)
		}
		f.Others = &others
	}
	return f, true
}

// share of all processors.
func (f Facts) share(processors float64) float64 { return processors / float64(f.Processors) }

// OtherShare is the share of all processor time that other programs used; 0 where that is not known.
func (f Facts) OtherShare() float64 {
	if f.Others == nil {
		return 0
	}
	return f.share(*f.Others)
}

// StealShare is the share of all processor time that the hypervisor took.
func (f Facts) StealShare() float64 { return f.share(f.Stolen) }

// Busy says why the machine was busy, as "other programs used 1.0 of 2 processors"; empty: it was not.
func (f Facts) Busy() string {
	var why []string
	full := f.share(f.Used+f.Stolen) >= Full
	if other := f.OtherShare(); other >= MuchOther || full && other >= SomeOther {
		why = append(why, f.others())
	}
	if f.StealShare() >= Steal {
		why = append(why, f.stolen())
	}
	if f.Memory != nil && *f.Memory >= Memory {
		why = append(why, f.memory())
	}
	return strings.Join(why, " and ")
}

// Notes are the facts in words, those that are bounds and those that are not.
func (f Facts) Notes() []string {
	notes := []string{fmt.Sprintf("%.1f of %d processors were in use", f.Used, f.Processors)}
	if f.Others != nil {
		notes = append(notes, f.others())
	}
	if f.Clients != nil && *f.Clients >= leastClients {
		notes = append(notes, fmt.Sprintf("other clients sent %.0f requests/s", *f.Clients))
	}
	if f.Stolen > 0 {
		notes = append(notes, f.stolen())
	}
	if f.Memory != nil {
		notes = append(notes, f.memory())
	}
	if f.IO != nil {
		notes = append(notes, fmt.Sprintf("processes waited for a disk %.0f%% of the time", 100**f.IO))
	}
	return notes
}

func (f Facts) others() string {
	return fmt.Sprintf("other programs used %.1f of %d processors", *f.Others, f.Processors)
}

func (f Facts) stolen() string {
	return fmt.Sprintf("the hypervisor took %.0f%% of the processors' time", 100*f.StealShare())
}

func (f Facts) memory() string {
	return fmt.Sprintf("processes waited for memory %.0f%% of the time", 100**f.Memory)
}

// Ours reports whether the generator started all of the control plane: otherwise it may be among the other programs.
func Ours(run result.Run) bool {
	return run.Cluster.Bundled && run.Cluster.Name != result.SharedCluster
}

// Lines name the phases that were measured on a busy machine, and why, a line each.
func Lines(phases []result.Phase) (lines []string) {
	for _, p := range phases {
		if p.Machine != nil && p.Machine.Busy != "" {
			lines = append(lines, p.Machine.Busy+" in phase "+p.Name)
		}
	}
	return lines
}
