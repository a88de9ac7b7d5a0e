package control

// The values of APIServer.Audit. Empty means AuditOff.
const (
	AuditOff      = "off"
	AuditMetadata = "metadata"
)

// AuditLog is the API server's audit log in a plane's directory, one JSON
// event a line. Files that were rotated stand beside it, as
// audit-2006-01-02T15-04-05.000.log.
const AuditLog = "audit/audit.log"

// LoadUser is the user name of the load's identity on a bundled plane, the
// only one whose requests are audited.
const LoadUser = "stormglass-loadgen"

// Audited reports whether the load's requests are in an audit log.
func (c Config) Audited() bool { return c.APIServer.Audit == AuditMetadata }

// auditFlags are what Audit sets, or what would keep it from working.
func auditFlags() []string {
	return []string{"audit-policy-file", "audit-log-path", "audit-log-maxbackup", "audit-log-maxage", "audit-log-format", "audit-log-version", "audit-log-compress"}
}
