package alerts

import "strings"

// Pages is the URL of the folder docs of the repository.
const Pages = "https://github.com/stormglass/stormglass/blob/main/docs"

// Runbook is the section of docs about an alert, as a path below Pages: its runbook_url
// is Pages + "/" + Runbook.
func Runbook(alert string) string { return "reference/runbooks.md#" + strings.ToLower(alert) }
