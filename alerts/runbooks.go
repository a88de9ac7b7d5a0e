package alerts

import "strings"

// Pages is the URL of the repository's folder docs.
const Pages = "https://github.com/stormglass/stormglass/blob/main/docs"

// Runbook returns the path, below Pages, of the documentation section for an alert. The alert's runbook_url is Pages +
// "/" + Runbook(alert).
func Runbook(alert string) string { return "reference/runbooks.md#" + strings.ToLower(alert) }
