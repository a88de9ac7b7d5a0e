package loadgen

import (
	"context"
	"io"

	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/trace/recording"
)

// Recording describes the content of a recording and the place of its trace.
type Recording = recording.Recording

// AuditRecording says from which audit logs to make a trace.
type AuditRecording = recording.AuditOptions

// RecordAudit makes a trace from audit logs.
func RecordAudit(ctx context.Context, o AuditRecording) (*Recording, error) {
	return recording.Audit(ctx, o)
}

// WriteRecordingText writes a recording for a terminal.
func WriteRecordingText(w io.Writer, r *Recording) error { return recording.WriteText(w, r) }

// ClusterRecording says how to record a cluster.
type ClusterRecording = recording.ClusterOptions

// RecordCluster counts the objects of a cluster and makes a trace of the changes from then on.
func RecordCluster(ctx context.Context, cfg *rest.Config, o ClusterRecording) (*Recording, error) {
	return recording.Cluster(ctx, cfg, o)
}

// SimKubeRecording says which SimKube trace to read.
type SimKubeRecording = recording.SimKubeOptions

// RecordSimKube converts a SimKube trace to a trace.
func RecordSimKube(ctx context.Context, o SimKubeRecording) (*Recording, error) {
	return recording.SimKube(ctx, o)
}
