package loadgen

import (
	"context"
	"io"

	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/trace/recording"
)

// Recording is what a recording has found, and where its trace is.
type Recording = recording.Recording

// AuditRecording says which audit logs to make a trace of.
type AuditRecording = recording.AuditOptions

// RecordAudit makes a trace of audit logs.
func RecordAudit(ctx context.Context, o AuditRecording) (*Recording, error) {
	return recording.Audit(ctx, o)
}

// WriteRecordingText writes a recording for a terminal.
func WriteRecordingText(w io.Writer, r *Recording) error { return recording.WriteText(w, r) }

// ClusterRecording says how to record a cluster.
type ClusterRecording = recording.ClusterOptions

// RecordCluster counts the objects of a cluster and makes a trace of the changes that come.
func RecordCluster(ctx context.Context, cfg *rest.Config, o ClusterRecording) (*Recording, error) {
	return recording.Cluster(ctx, cfg, o)
}

// SimKubeRecording says which trace of SimKube to read.
type SimKubeRecording = recording.SimKubeOptions

// RecordSimKube makes a trace of a trace of SimKube.
func RecordSimKube(ctx context.Context, o SimKubeRecording) (*Recording, error) {
	return recording.SimKube(ctx, o)
}
