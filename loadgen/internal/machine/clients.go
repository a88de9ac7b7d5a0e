package machine

import "strings"

// perRequest and perList are the processor seconds that other clients on this machine may use for one request to the
// API servers. Up to these values, their processor time counts as part of the load. Anything above counts as used by
// other programs.
const (
	perRequest = "0.005" // to write or read an object, for a client in any language
	perList    = "0.02"  // to decode a list of a thousand objects
)

// served and sent are the PromQL for two rates of requests: the requests that the API servers answered, and the
// requests that the run and the components sent. Both exclude watches and other long-lived connections, because the API
// servers count them only when they end.
const (
	served = `sum(rate(apiserver_request_total{job="kube-apiserver", verb!~"WATCH|WATCHLIST|CONNECT", subresource!~"/(livez|readyz|healthz).*"}[$over]))`
	sent   = `sum(rate(stormglass_own_requests_total[$over]))` +
		// Only API servers send requests to webhooks, and count these requests as clients. The filter on `host`
		// excludes them.
		` + (sum(rate(rest_client_requests_total{job=~"kube-scheduler|kube-controller-manager|cloud-controller-manager|metrics-server"}[$over])) or vector(0))` +
		` + (sum(rate(rest_client_requests_total{job="kube-apiserver", host=~"\\[::1\\]:.*|localhost:.*"}[$over])) or vector(0))` +
		` + (sum(rate(stormglass_requests_total[$over])) or vector(0))` +
		` + (sum(rate(stormglass_history_requests_total[$over])) or vector(0))` +
		` + (sum(rate(stormglass_node_requests_total{verb!="watch"}[$over])) or vector(0))`
	clients = `clamp_min(` + served + ` - (` + sent + `), 0)`
	lists   = `clamp_min((sum(rate(apiserver_request_total{job="kube-apiserver", verb="LIST"}[$over])) or vector(0))` +
		` - (sum(rate(stormglass_requests_total{verb="list"}[$over])) or vector(0)), 0)`
)

// Clients returns PromQL for the rate of requests, per second, that the API servers answered, except requests of the
// run and of the control plane's components. over is the range of the rate, such as "1m". The expression has no value
// for a run that did not count its own requests.
func Clients(over string) string { return strings.ReplaceAll(clients, "$over", over) }

// ClientProcessors returns PromQL for the number of processors that the senders of the requests in Clients may use as
// part of the load. over is the range of the rate, such as "1m".
func ClientProcessors(over string) string {
	return strings.ReplaceAll(perRequest+` * `+clients+` + (`+perList+` - `+perRequest+`) * clamp_max(`+lists+`, scalar(`+clients+`))`, "$over", over)
}
