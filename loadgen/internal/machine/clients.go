package machine

import "strings"

// Clients of the API servers on the same machine are load, and no other programs. Each of their requests may use so much
// processor time of the machine, in seconds; what they use past that counts as other programs'.
const (
	perRequest = "0.005" // to write or read an object, in any language
	perList    = "0.02"  // to decode a list of a thousand objects
)

// The rates of requests, by the counts of those who answered or sent them. Watches and connections that last are left out: they
// are counted when they end.
const (
	served = `sum(rate(apiserver_request_total{job="kube-apiserver", verb!~"WATCH|WATCHLIST|CONNECT", subresource!~"/(livez|readyz|healthz).*"}[$over]))`
	sent   = `sum(rate(stormglass_own_requests_total[$over]))` +
		// A component's client counts requests to webhooks too: only the API servers send such requests.
		` + (sum(rate(rest_client_requests_total{job=~"kube-scheduler|kube-controller-manager|cloud-controller-manager|metrics-server"}[$over])) or vector(0))` +
		` + (sum(rate(rest_client_requests_total{job="kube-apiserver", host=~"\\[::1\\]:.*|localhost:.*"}[$over])) or vector(0))` +
		` + (sum(rate(stormglass_requests_total[$over])) or vector(0))` +
		` + (sum(rate(stormglass_history_requests_total[$over])) or vector(0))` +
		` + (sum(rate(stormglass_node_requests_total{verb!="watch"}[$over])) or vector(0))`
	clients = `clamp_min(` + served + ` - (` + sent + `), 0)`
	lists   = `clamp_min((sum(rate(apiserver_request_total{job="kube-apiserver", verb="LIST"}[$over])) or vector(0))` +
		` - (sum(rate(stormglass_requests_total{verb="list"}[$over])) or vector(0)), 0)`
)

// Clients is PromQL for the requests per second that API servers answered to clients other than the run and the plane's
// components, over a range as "1m". It has no value for a run that did not count its own requests.
func Clients(over string) string { return strings.ReplaceAll(clients, "$over", over) }

// ClientProcessors is PromQL for the processors that these clients may use, over a range.
func ClientProcessors(over string) string {
	return strings.ReplaceAll(perRequest+` * `+clients+` + (`+perList+` - `+perRequest+`) * clamp_max(`+lists+`, scalar(`+clients+`))`, "$over", over)
}
