package render

import (
	"regexp"

	"github.com/stormglass/stormglass/alerts"
)

var clusterOfAlert = regexp.MustCompile(`\$labels\.cluster\b`)

// incidents are the pages of incidents, by their number in the table of proofs.
func incidents() map[string]string {
	return map[string]string{
		"I1": "fd-exhaustion", "I2": "stacked-etcd", "I3": "slow-fsync", "I4": "scheduler-scale", "I5": "thundering-herd", "I6": "leader-changes",
		"I7": "slow-verbs", "I8": "watch-storm", "I9": "rollout-hops", "I10": "node-loss", "I11": "component-loss",
	}
}

// pages are the pages of alerts that are about no numbered incident, or about one that
// another page tells better.
func pages() map[string]string {
	return map[string]string{
		"EncryptionProviderFailing": "kms-outage", "AuthenticationFailing": "token-webhook-down", "AuthorizationWebhookFailing": "webhook-in-front",
		"RequestFilterSlow": "webhook-in-front", "ConversionWebhookFailing": "conversion-webhook-down", "AuditEventsLost": "audit-disk-full",
		"AggregatedAPIUnavailable": "aggregated-api-down", "CloudCallsFailing": "cloud-throttled", "APIServerPriorityLevelFlooded": "noisy-neighbour",
	}
}

// page is the page of docs about an alert: that of its incident, or the list of alerts.
func (r *renderer) page(alert string) string {
	page := pages()[alert]
	for _, p := range alerts.Table() {
		if page == "" && p.Name == alert {
			page = incidents()[p.Incident]
		}
	}
	if page == "" {
		return "reference/alerts.md"
	}
	return "records/incidents/" + page + ".md"
}
