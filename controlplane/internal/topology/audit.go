package topology

import (
	"github.com/stormglass/stormglass/controlplane/control"
)

// auditBackups bounds the audit log on disk: 40 files of upstream's 100 MB,
// about four million requests. Upstream's 100 files would be 10 GB.
const auditBackups = "40"

// audit has the API server write a line for each request of the load. The
// backend stays upstream's: "blocking", written before the request ends. A
// buffered one would cost the request less, but drops events when it is full,
// and a count that may be short proves nothing.
func (c *component) audit(cfg control.Config, l Layout) {
	if !cfg.Audited() {
		return
	}
	const reason = "apiServer.audit: a line for each request of the load, which costs the server CPU and the request some latency"
	c.setDeviation("audit-policy-file", l.AuditPolicy(), "", reason)
	c.setDeviation("audit-log-path", l.AuditLog(), "", reason)
	c.setDeviation("audit-log-maxbackup", auditBackups, "100", "apiServer.audit: at most 4 GB of log")
}

// auditPolicy is the content of Layout.AuditPolicy, nil without auditing. The
// load's watches are left out: they end when their client likes. So is the
// stage RequestReceived: the last stage has the time of it.
func auditPolicy(cfg control.Config) []byte {
	if !cfg.Audited() {
		return nil
	}
	return []byte(`apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  verbs: [watch]
- level: Metadata
  users: [` + control.LoadUser + `]
- level: None
`)
}
