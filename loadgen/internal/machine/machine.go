// Package machine evaluates measurements of the generator's machine during a phase. It defines the limits from which
// the machine was too busy for valid measurements of time. Runs, gates, comparisons and capacity searches all use these
// limits. It does no I/O.
package machine

import (
	"fmt"
	"strings"

	"github.com/stormglass/stormglass/loadgen/result"
)

// A machine that reaches one of these limits is busy. The limits are fractions.
const (
	// MuchOther is the limit for the share of all processor time that other programs use; 0.20 is 0.4 processors on a
	// machine with two. Above the limit, processes of the run wait for a CPU for milliseconds at a time.
	MuchOther = 0.20
	// SomeOther is the limit for other programs' share on a machine that reaches Full. Such a machine has no idle time
	// for them. `ab --discard-other` uses this limit on any machine and discards pairs above it, because a comparison
	// looks for changes of 5%.
	SomeOther = 0.05
	// Full is the share of all processor time in use, including stolen time, at which a machine has no idle time left:
	// threads that are ready to run begin to wait.
	Full = 0.90
	// Steal is the limit for the share of all processor time that the hypervisor takes. The hypervisor may take a
	// processor in the middle of a request.
	Steal = 0.05
	// Memory is the limit for the share of the time in which at least one process waited for memory (PSI "some").
	// Above the limit, page reclaim stops every process that allocates memory, and the kernel reads program code from
	// the disk again.
	Memory = 0.10
	// minClients is the minimum rate of other clients' requests, per second, at which Notes mentions them.
	minClients = 1.0
)

// Facts describes a machine during a phase. Numbers of processors and rates are means over the phase.
type Facts struct {
	Processors int
	Used       float64 // number of processors in use by all programs
	Stolen     float64 // number of processors that the hypervisor took
	// Others is the number of processors that other programs used, without the other clients of the API servers. It is
	// nil if the control plane may be one of these programs.
	Others *float64
	// Clients is the number of requests per second that other clients sent to the API servers. It is nil if unknown.
	Clients *float64
	// CPU, Memory and IO are the shares of the time in which some process waited for a CPU, for memory or for a disk.
	// They are nil if unknown. CPU and IO have no limit, because the control plane itself causes such waits.
	CPU, Memory, IO *float64
}

// Of computes Facts from measurements over the given number of seconds. `ours` is true if the generator started the
// whole control plane. `processors` is used if m does not contain the number of processors (old runs). ok is false if
// nothing is known.
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
	f.CPU, f.Memory, f.IO, f.Clients = per(m.CPUWaitSeconds), per(m.MemoryWaitSeconds), per(m.IOWaitSeconds), per(m.ClientRequests)
	if ours {
		others := max(0, m.BusySeconds-m.OwnSeconds) / seconds
		if m.ClientSeconds != nil {
			others = max(0, others-*m.ClientSeconds/seconds)
		}
		f.Others = &others
	}
	return f, true
}

// share converts a number of processors to a share of all processors.
func (f Facts) share(processors float64) float64 { return processors / float64(f.Processors) }

// OtherShare returns the share of all processor time that other programs used, or 0 if it is unknown.
func (f Facts) OtherShare() float64 {
	if f.Others == nil {
		return 0
	}
	return f.share(*f.Others)
}

// StealShare returns the share of all processor time that the hypervisor took.
func (f Facts) StealShare() float64 { return f.share(f.Stolen) }

// NoneIdle reports whether the machine had no idle processor time, so that threads waited for a CPU.
func (f Facts) NoneIdle() bool { return f.share(f.Used+f.Stolen) >= Full }

// Busy returns the reason why the machine was busy, such as "other programs used 1.0 of 2 processors", or "" if it was
// not busy.
func (f Facts) Busy() string {
	var why []string
	switch other := f.OtherShare(); {
	case other >= MuchOther:
		why = append(why, f.others())
	case other >= SomeOther && f.NoneIdle():
		why = append(why, f.others()+", and none was idle")
	}
	if f.StealShare() >= Steal {
		why = append(why, f.stolen())
	}
	if f.Memory != nil && *f.Memory >= Memory {
		why = append(why, f.memory())
	}
	return strings.Join(why, " and ")
}

// Notes returns all facts as text, including facts that have no limit.
func (f Facts) Notes() []string {
	notes := []string{fmt.Sprintf("%.1f of %d processors were in use", f.Used, f.Processors)}
	if f.Others != nil {
		notes = append(notes, f.others())
	}
	if f.Clients != nil && *f.Clients >= minClients {
		notes = append(notes, fmt.Sprintf("other clients sent %.0f requests/s", *f.Clients))
	}
	if f.Stolen > 0 {
		notes = append(notes, f.stolen())
	}
	if f.CPU != nil {
		notes = append(notes, fmt.Sprintf("for %.0f%% of the time, a process waited for a CPU", 100**f.CPU))
	}
	if f.Memory != nil {
		notes = append(notes, f.memory())
	}
	if f.IO != nil {
		notes = append(notes, fmt.Sprintf("for %.0f%% of the time, a process waited for a disk", 100**f.IO))
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

// Sum adds up the measurements of phases, and returns their total length in seconds. The sum is nil if a phase has no
// measurements. A pointer in the sum is nil if a phase lacks this value.
func Sum(phases []result.Phase) (sum *result.Machine, seconds float64) {
	sum = &result.Machine{CPUWaitSeconds: new(0.0), MemoryWaitSeconds: new(0.0), IOWaitSeconds: new(0.0), ClientRequests: new(0.0), ClientSeconds: new(0.0)}
	known := len(phases) > 0
	for _, p := range phases {
		seconds += p.Seconds()
		m := p.Machine
		if m == nil {
			known = false
			continue
		}
		sum.BusySeconds += m.BusySeconds
		sum.OwnSeconds += m.OwnSeconds
		sum.StealSeconds += m.StealSeconds
		sum.GeneratorSeconds += m.GeneratorSeconds
		sum.Processors = max(sum.Processors, m.Processors)
		add(&sum.CPUWaitSeconds, m.CPUWaitSeconds)
		add(&sum.MemoryWaitSeconds, m.MemoryWaitSeconds)
		add(&sum.IOWaitSeconds, m.IOWaitSeconds)
		add(&sum.ClientRequests, m.ClientRequests)
		add(&sum.ClientSeconds, m.ClientSeconds)
	}
	if !known {
		return nil, seconds
	}
	return sum, seconds
}

// add adds v to a sum. The sum becomes nil if v is nil.
func add(sum **float64, v *float64) {
	if *sum == nil || v == nil {
		*sum = nil
		return
	}
	**sum += *v
}

// Ours reports whether the generator started the whole control plane of the run. Otherwise the control plane may be
// among the other programs.
func Ours(run result.Run) bool {
	return run.Cluster.Bundled && run.Cluster.Name != result.SharedCluster
}

// Lines returns one line for each phase during which the machine was busy, with the reason.
func Lines(phases []result.Phase) (lines []string) {
	for _, p := range phases {
		if p.Machine != nil && p.Machine.Busy != "" {
			lines = append(lines, p.Machine.Busy+" in phase "+p.Name)
		}
	}
	return lines
}
