package alerts

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

const runbooksFile = "../docs/reference/runbooks.md"

// TestRunbooksPage keeps docs/reference/runbooks.md equal to the rules.
func TestRunbooksPage(t *testing.T) {
	got := runbooksPage(t)
	if *update {
		if err := os.WriteFile(runbooksFile, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(runbooksFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/reference/runbooks.md differs from the rules: run go test ./alerts -update")
	}
}

// TestRunbookURL checks that the runbook_url of each alert leads to an existing section with the alert's name.
func TestRunbookURL(t *testing.T) {
	var anchors []string
	for line := range strings.Lines(string(runbooksPage(t))) {
		if title, ok := strings.CutPrefix(line, "### "); ok {
			anchors = append(anchors, strings.ToLower(strings.TrimSpace(title)))
		}
	}
	for _, a := range mustRules(t) {
		if subjects[a.File] == "" {
			t.Errorf("subjects lacks %s", a.File)
		}
		if got, want := a.Annotations["runbook_url"], Pages+"/"+Runbook(a.Alert); got != want {
			t.Errorf("%s: runbook_url is %q, want %q", a.Alert, got, want)
		}
		if _, anchor, _ := strings.Cut(Runbook(a.Alert), "#"); !slices.Contains(anchors, anchor) {
			t.Errorf("%s: docs/reference/runbooks.md has no section #%s", a.Alert, anchor)
		}
	}
}

const runbooksHead = `# Runbooks

Each section gives an [alert](alerts.md)'s severity, the smallest fault that fires it, what it means, where to look and what to do. "12 s; fires after 72 s"
means: if the fault affects everything that the alert counts, it must last 12 s, and the alert fires 72 s after the fault begins. *Incident* links to an
example with its remedy.

The annotation ` + "`runbook_url`" + ` of the alert leads to this page, or with ` + "`loadgen alerts render --runbook-base URL`" + ` to your copy.
`

// subjects maps each rule file to its heading on the page.
var subjects = map[string]string{
	"apiserver.yaml":         "Latency and errors of the API server",
	"apiserver_traffic.yaml": "Traffic of the API server",
	"controllers.yaml":       "Controllers",
	"etcd.yaml":              "etcd",
	"loadgen.yaml":           "Load generator",
	"request_path.yaml":      "Encryption, authentication, audit",
	"scheduler.yaml":         "Scheduler",
	"targets.yaml":           "Processes and scrapes",
}

func runbooksPage(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(runbooksHead)
	var file string
	for _, a := range mustRules(t) {
		if a.File != file {
			file = a.File
			fmt.Fprintf(&b, "\n## %s\n\n[Rules](../../alerts/%s)\n", subjects[file], file)
		}
		fmt.Fprintf(&b, "\n### %s\n\n*%s*: %s.", a.Alert, a.Labels["severity"], a.Smallest)
		if page := incidentOf(a); page != "" {
			fmt.Fprintf(&b, " [Incident](../incidents/%s.md)", page)
		}
		b.WriteString("\n")
		for line := range strings.Lines(a.Annotations["runbook"]) {
			step, text, _ := strings.Cut(strings.TrimSpace(line), ": ")
			if step == "Means" {
				fmt.Fprintf(&b, "\n%s%s\n", strings.ToUpper(text[:1]), text[1:])
			} else {
				fmt.Fprintf(&b, "\n**%s**: %s\n", step, text)
			}
		}
	}
	return b.Bytes()
}

// incidentOf returns the page of docs/incidents about an alert, or "" if there is no such page.
func incidentOf(a Alert) string {
	// Alerts without a numbered incident, or with a page that fits better than the page of their incident.
	page := map[string]string{
		"EncryptionProviderFailing": "kms-outage", "AuthenticationFailing": "token-webhook-down", "AuthorizationWebhookFailing": "webhook-in-front",
		"RequestFilterSlow": "webhook-in-front", "ConversionWebhookFailing": "conversion-webhook-down", "AuditEventsLost": "audit-disk-full",
		"AggregatedAPIUnavailable": "aggregated-api-down", "CloudCallsFailing": "cloud-throttled", "APIServerPriorityLevelFlooded": "noisy-neighbour",
	}[a.Alert]
	if page != "" {
		return page
	}
	return map[string]string{
		"I1": "fd-exhaustion", "I2": "stacked-etcd", "I3": "slow-fsync", "I4": "scheduler-scale", "I5": "thundering-herd", "I6": "leader-changes",
		"I7": "slow-verbs", "I8": "watch-storm", "I9": "rollout-hops", "I10": "node-loss", "I11": "component-loss",
	}[a.Incident]
}
