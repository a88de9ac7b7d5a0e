package loadgen

import "github.com/stormglass/stormglass/loadgen/internal/trace"

// TraceComparison compares a trace with the recording of its replay.
type TraceComparison = trace.Comparison

// TraceCompareOptions describe how the trace was replayed.
type TraceCompareOptions = trace.CompareOptions

// CompareTraces compares a trace file with the recording of its replay.
func CompareTraces(path, recording string, o TraceCompareOptions) (TraceComparison, error) {
	return trace.Compare(path, recording, o)
}
