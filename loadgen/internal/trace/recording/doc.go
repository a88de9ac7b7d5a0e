// Package recording records traces from audit logs, from the changes in a cluster, and from
// SimKube traces.
package recording
