// Package capture creates recordings from audit logs, from the changes in a cluster, and from SimKube traces.
package capture
