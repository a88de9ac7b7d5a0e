package loadgen

import (
	"context"
	"io"

	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/trace/recording"
)

// Recording describes the content of a recording and the location of its trace.
type Recording = recording.Recording

// AuditRecording selects the audit logs from which a trace is recorded.
type AuditRecording = recording.AuditOptions

// RecordAudit records a trace from audit logs.
func RecordAudit(ctx context.Context, o AuditRecording) (*Recording, error) {
	return recording.Audit(ctx, o)
}

// WriteRecordingText writes a recording for a terminal.
func WriteRecordingText(w io.Writer, r *Recording) error { return recording.WriteText(w, r) }

// ClusterRecording configures a recording of a cluster.
type ClusterRecording = recording.ClusterOptions

// RecordCluster counts the objects of a cluster, and records a trace of the changes after that.
func RecordCluster(ctx context.Context, cfg *rest.Config, o ClusterRecording) (*Recording, error) {
	return recording.Cluster(ctx, cfg, o)
}

// SimKubeRecording selects the SimKube trace to convert.
type SimKubeRecording = recording.SimKubeOptions

// RecordSimKube converts a SimKube trace to Stormglass's trace format.
func RecordSimKube(ctx context.Context, o SimKubeRecording) (*Recording, error) {
	return recording.SimKube(ctx, o)
}
