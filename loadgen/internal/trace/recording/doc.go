// Package recording makes traces: from audit logs, from the changes in a cluster, and from
// the traces of SimKube.
package recording
