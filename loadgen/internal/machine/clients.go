package machine

import "strings"

// Processor time that a request may cost its client on this machine, in seconds. Clients of the API servers are part of
// the load, not other programs. Processor time beyond these values counts as used by other programs.
const (
	perRequest = "0.005" // to write or read an object, in any language
	perList    = "0.02"  // to decode a list of a thousand objects
)

// Rates of requests in PromQL: those that the API servers answered, and those that the run and the components sent.
// Watches and long-lived connections are left out, because they are counted when they end.
const (
	served = `sum(rate(apiserver_request_total{job="kube-apiserver", verb!~"WATCH|WATCHLIST|CONNECT", subresource!~"/(livez|readyz|healthz).*"}[$over]))`
	sent   = `sum(rate(stormglass_own_requests_total[$over]))` +
		// A component's client also counts requests to webhooks; only API servers send those.
		` + (sum(rate(rest_client_requests_total{job=~"kube-scheduler|kube-controller-manager|cloud-controller-manager|metrics-server"}[$over])) or vector(0))` +
		` + (sum(rate(rest_client_requests_total{job="kube-apiserver", host=~"\\[::1\\]:.*|localhost:.*"}[$over])) or vector(0))` +
		` + (sum(rate(stormglass_requests_total[$over])) or vector(0))` +
		` + (sum(rate(stormglass_history_requests_total[$over])) or vector(0))` +
		` + (sum(rate(stormglass_node_requests_total{verb!="watch"}[$over])) or vector(0))`
	clients = `clamp_min(` + served + ` - (` + sent + `), 0)`
	lists   = `clamp_min((sum(rate(apiserver_request_total{job="kube-apiserver", verb="LIST"}[$over])) or vector(0))` +
		` - (sum(rate(stormglass_requests_total{verb="list"}[$over])) or vector(0)), 0)`
)

// Clients returns PromQL for the rate of requests, per second, that the API servers answered to clients other than the
// run and the components of the control plane. The rate is over a range such as "1m". It has no value for a run that did
// not count its own requests.
func Clients(over string) string { return strings.ReplaceAll(clients, "$over", over) }

// ClientProcessors returns PromQL for the number of processors that these clients may use, over a range such as "1m".
func ClientProcessors(over string) string {
	return strings.ReplaceAll(perRequest+` * `+clients+` + (`+perList+` - `+perRequest+`) * clamp_max(`+lists+`, scalar(`+clients+`))`, "$over", over)
}
