package diagnosis

import (
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/promqltest"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/result"
)

// window is the range of rates over two scrapes.
const window = 2*step + time.Millisecond

// evaluate runs a test in promtool's language for series and evaluations.
func evaluate(t *testing.T, text string) {
	t.Helper()
	promqltest.RunTest(t, text, promqltest.NewTestEngine(t, false, 0, 10_000))
}

// A counter that appears with its first count has a rate from that scrape, unless its process was not scraped before.
func TestRateOfANewCounter(t *testing.T) {
	s := known.signal("webhook-open")
	evaluate(t, `
load 5s
  up{job="kube-apiserver", instance="a"} 1x40
  up{job="kube-apiserver", instance="b"} _x20 1x20
  up{job="kube-apiserver", instance="c"} 1x17 0x1 1x20
  apiserver_admission_webhook_fail_open_count{job="kube-apiserver", instance="c", name="missed"} 500x17 stale _ 500x20
  apiserver_admission_webhook_fail_open_count{job="kube-apiserver", instance="a", name="new"} _x10 20 40x29
  apiserver_admission_webhook_fail_open_count{job="kube-apiserver", instance="a", name="old"} 7x9 27 47x29
  apiserver_admission_webhook_fail_open_count{job="kube-apiserver", instance="b", name="unseen"} _x20 500x20

eval range from 50s to 70s step 5s `+s.query(window)+`
  {name="new"} 1.9998000199980002 3.9996000399960003 2 0 0
  {name="old"} 2 4 2 0 0
  {name="missed"} 0 0 0 0 0

eval range from 95s to 110s step 5s `+s.query(window)+`
  {name="new"} 0 0 0 0
  {name="old"} 0 0 0 0
  {name="unseen"} _ _ 0 0
  {name="missed"} _ _ 0 0
`)
}

// A process has started if its start time is later than two scrapes ago, after any absence and for a late scrape too.
// None of these counts as a start: a missed scrape of a running process, a clock change of less than a second, and
// several processes that respond at one address, except when the address is first seen.
func TestStartedIsSeenPastAGap(t *testing.T) {
	s := known.signal("started")
	evaluate(t, `
load 5s
  up{job="kube-apiserver", instance="at once"} 1x9 0 1x40
  process_start_time_seconds{job="kube-apiserver", instance="at once"} 7x9 stale 50x40
  up{job="kube-apiserver", instance="late scrape"} 1x9 0 _x5 1x40
  process_start_time_seconds{job="kube-apiserver", instance="late scrape"} 7x9 stale _x5 56x40
  up{job="kube-apiserver", instance="long away"} 1x9 0x19 1x40
  process_start_time_seconds{job="kube-apiserver", instance="long away"} 7x9 stale _x18 60x40
  up{job="kube-apiserver", instance="missed scrape"} 1x24 0 1x40
  process_start_time_seconds{job="kube-apiserver", instance="missed scrape"} 7x4 20x19 stale 20x40
  up{job="kube-apiserver", instance="clock"} 1x60
  process_start_time_seconds{job="kube-apiserver", instance="clock"} 7x29 7.5x30
  up{job="kube-apiserver", instance="clock back"} 1x60
  process_start_time_seconds{job="kube-apiserver", instance="clock back"} 7.5x9 7x9 60x40
  up{job="kube-apiserver", instance="shared"} 1x60
  process_start_time_seconds{job="kube-apiserver", instance="shared"} 7 20 7 20 7 20 7 20 20 7 20x50
  up{job="kube-apiserver", instance="first seen"} _x20 1x40
  process_start_time_seconds{job="kube-apiserver", instance="first seen"} _x20 100x40

eval instant at 200s sum_over_time((`+s.query(window)+` > bool 0)[200s:5s])
  {job="kube-apiserver", instance="at once"} 3
  {job="kube-apiserver", instance="late scrape"} 3
  {job="kube-apiserver", instance="long away"} 3
  {job="kube-apiserver", instance="missed scrape"} 3
  {job="kube-apiserver", instance="clock"} 0
  {job="kube-apiserver", instance="clock back"} 3
  {job="kube-apiserver", instance="shared"} 1
  {job="kube-apiserver", instance="first seen"} 0
`)
}

// The signal "throttled" counts only 429s that priority and fairness did not cause; those count as rejections.
func TestThrottledOtherwise(t *testing.T) {
	const answers = `
load 5s
  up{job="kube-apiserver", instance="a"} 1x60
  apiserver_request_total{job="kube-apiserver", instance="a", code="429", resource="things"} 0+50x60
`
	evaluate(t, answers+`
eval instant at 100s round(`+known.signal("throttled").query(window)+`)
  {resource="things"} 100
`)
	evaluate(t, answers+`  apiserver_flowcontrol_rejected_requests_total{job="kube-apiserver", instance="a", priority_level="tiny"} 0+50x60

eval instant at 100s round(`+known.signal("throttled").query(window)+`)
`)
}

// Requests for a missing API are counted only by authentication.
func TestUnservedRequests(t *testing.T) {
	evaluate(t, `
load 5s
  up{job="kube-apiserver", instance="a"} 1x60
  authentication_attempts{job="kube-apiserver", instance="a", result="success"} 0+100x20 2100+600x20
  apiserver_request_total{job="kube-apiserver", instance="a", code="200"} 0+50x60
  authorization_attempts_total{job="kube-apiserver", instance="a", result="denied"} 0+50x60

eval range from 100s to 195s step 95s round(`+known.signal("unserved").query(window)+`)
  {job="kube-apiserver"} 0 100
`)
}

// On a starved machine a few ended watches say nothing about their clients, but many do.
func TestWatchersBehind(t *testing.T) {
	s := known.signal("watchers-behind")
	few, many, all := "  {resource=\"few\"} 4\n", "  {resource=\"many\"} 20\n", "  {resource=\"crowd\"} 20\n"
	for name, c := range map[string]struct{ wait, busy, want string }{
		"a quiet machine":           {"0.1", "0.5", all + few + many},
		"threads wait":              {"5", "0.5", many},
		"all processors are in use": {"0.1", "1.95", many},
	} {
		t.Run(name, func(t *testing.T) {
			evaluate(t, `
load 5s
  up{job="kube-apiserver", instance="a"} 1x40
  apiserver_terminated_watchers_total{job="kube-apiserver", instance="a", resource="few"} 3x19 7x20
  apiserver_terminated_watchers_total{job="kube-apiserver", instance="a", resource="many"} 3x19 23x20
  apiserver_terminated_watchers_total{job="kube-apiserver", instance="a", resource="crowd"} 3x19 23x20
  apiserver_longrunning_requests{job="kube-apiserver", instance="a", resource="crowd", verb="WATCH"} 101x40
  stormglass_process_run_delay_seconds_total{job="loadgen", component_instance="loadgen"} 0+`+c.wait+`x40
  stormglass_process_timeslices_total{job="loadgen", component_instance="loadgen"} 0+1000x40
  stormglass_machine_busy_seconds_total{job="loadgen"} 0+`+c.busy+`x40
  stormglass_machine_processors{job="loadgen"} 0.4x40

eval instant at 100s round(`+s.query(window)+`)
`+c.want)
		})
	}
}

// A link between members is not the reason why writes are slow if two fsyncs of the write-ahead log take as long.
func TestEtcdFar(t *testing.T) {
	for name, c := range map[string]struct{ fsyncs, want string }{
		"fast fsyncs": {"0.001", "0.108"},
		"slow fsyncs": {"0.04", "0.03"},
		"slower":      {"0.09", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			evaluate(t, `
load 5s
  up{job="etcd", instance="a"} 1x40
  etcd_server_request_duration_seconds_bucket{job="etcd", instance="a", type="Txn", le="0.1"} 0x40
  etcd_server_request_duration_seconds_bucket{job="etcd", instance="a", type="Txn", le="0.2"} 0+100x40
  etcd_server_request_duration_seconds_bucket{job="etcd", instance="a", type="Txn", le="+Inf"} 0+100x40
  etcd_disk_wal_fsync_duration_seconds_sum{job="etcd", instance="a"} 0+`+c.fsyncs+`x40
  etcd_disk_wal_fsync_duration_seconds_count{job="etcd", instance="a"} 0+1x40

eval instant at 100s `+known.signal("etcd-far").query(window)+`
  {job="etcd", instance="a"} `+c.want+`
`)
		})
	}
}

// A connection is refused if no server listens. A response with an error status is not a refusal. If the scraper does
// not report the reason, a fast failure counts.
func TestRefusedIsNoErrorStatus(t *testing.T) {
	const recorded = `
load 5s
  up{job="kube-apiserver", instance="full"} 1x9 0x10
  scrape_duration_seconds{job="kube-apiserver", instance="full"} 0.02x20
  scrape_failed{job="kube-apiserver", instance="full", reason="429"} _x9 1x10
  up{job="kube-apiserver", instance="down"} 1x9 0x10
  scrape_duration_seconds{job="kube-apiserver", instance="down"} 0.001x20
  scrape_failed{job="kube-apiserver", instance="down", reason="refused"} _x9 1x10
  up{job="kube-apiserver", instance="untold"} 1x9 0x10
  scrape_duration_seconds{job="kube-apiserver", instance="untold"} 0.001x20

`
	evaluate(t, recorded+`eval instant at 80s `+known.signal("refused").query(window)+`
  {job="kube-apiserver", instance="down"} 1
  {job="kube-apiserver", instance="untold"} 1

eval instant at 80s `+known.signal("scrape-429").query(window)+`
  {job="kube-apiserver", instance="full"} 1
`)
}

// A process that waits for a processor, or uses all that it may use, responds late to scrapes, but is not paused.
func TestStarvedProcessIsNotPaused(t *testing.T) {
	evaluate(t, `
load 5s
  up{job="kube-apiserver", instance="starved"} 1x40
  scrape_duration_seconds{job="kube-apiserver", instance="starved"} 0.1x39 6
  process_cpu_seconds_total{job="kube-apiserver", instance="starved"} 0+1x39 39.2
  stormglass_process_run_delay_seconds_total{job="loadgen", instance="loadgen", component="kube-apiserver", component_instance="starved"} 0+4x40
  up{job="kube-apiserver", instance="paused"} 1x40
  scrape_duration_seconds{job="kube-apiserver", instance="paused"} 0.1x39 6
  process_cpu_seconds_total{job="kube-apiserver", instance="paused"} 0+1x39 39.2
  stormglass_process_run_delay_seconds_total{job="loadgen", instance="loadgen", component="kube-apiserver", component_instance="paused"} 0+0.01x40
  up{job="kube-apiserver", instance="overloaded"} 1x40
  scrape_duration_seconds{job="kube-apiserver", instance="overloaded"} 0.1x39 6
  process_cpu_seconds_total{job="kube-apiserver", instance="overloaded"} 0+1x38 _ _
  stormglass_process_run_seconds_total{job="loadgen", instance="loadgen", component="kube-apiserver", component_instance="overloaded"} 0+5x40

eval instant at 200s `+known.signal("hangs").query(window)+`
  {job="kube-apiserver", instance="paused"} 3.5999999999999996
`)
}

// The processors that a process uses are known without successful scrapes.
func TestProcessorsWithoutScrapes(t *testing.T) {
	evaluate(t, `
load 5s
  process_cpu_seconds_total{job="kube-apiserver", instance="slow"} 0+2x30 _x10
  go_sched_gomaxprocs_threads{job="kube-apiserver", instance="slow"} 1x30 _x10
  stormglass_process_run_seconds_total{job="loadgen", instance="loadgen", component="kube-apiserver", component_instance="slow"} 0+5x40

eval instant at 200s `+known.signal("cpu").query(window)+`
  {job="kube-apiserver", instance="slow"} 1
`)
}

// An API server whose clients end requests early still reaches etcd.
func TestErrorsOfEtcdAreALargeShare(t *testing.T) {
	evaluate(t, `
load 5s
  etcd_request_errors_total{job="kube-apiserver", instance="reached"} 0+10x40
  etcd_request_duration_seconds_count{job="kube-apiserver", instance="reached"} 0+500x40
  etcd_request_errors_total{job="kube-apiserver", instance="cut off"} 0+10x40
  etcd_request_duration_seconds_count{job="kube-apiserver", instance="cut off"} 0+12x40

eval instant at 200s `+known.signal("etcd-errors").query(window)+`
  {job="kube-apiserver", instance="reached"} 0
  {job="kube-apiserver", instance="cut off"} 2
`)
}

// A member that is scraped for the first time may have lost its peers before. A member that was scraped before counts
// its first loss.
func TestPeersLostBefore(t *testing.T) {
	s := known.signal("peers-lost")
	evaluate(t, `
load 5s
  up{job="etcd", instance="old"} 1x40
  up{job="etcd", instance="new"} _x20 1x20
  etcd_network_disconnected_peers_total{job="etcd", instance="old", Remote="b"} _x20 1x20
  etcd_network_disconnected_peers_total{job="etcd", instance="new", Remote="b"} _x20 7x20

eval range from 95s to 115s step 5s `+s.query(window)+`
  {job="etcd", instance="old"} _ 1 1 1 0
  {job="etcd", instance="new"} _ _ _ _ 0
`)
}

// The last requests of a burst waited long, but no request waits behind them.
func TestRequestsThatWaitForALimit(t *testing.T) {
	s := known.signal("client-limit")
	evaluate(t, `
load 5s
  rest_client_rate_limiter_duration_seconds_sum{job="kube-controller-manager"} 10x9 110 210 310 311 312 313
  rest_client_rate_limiter_duration_seconds_count{job="kube-controller-manager"} 10x9 110 210 310 311 312 313

eval range from 55s to 70s step 5s `+s.query(window)+`
  {job="kube-controller-manager"} 1 1 1 0
`)
}

// An API server that never reported etcd's size is not cut off from etcd.
func TestEtcdUnseen(t *testing.T) {
	s := known.signal("etcd-unseen")
	evaluate(t, `
load 5s
  up{job="kube-apiserver", instance="cut off"} 1x40
  apiserver_storage_size_bytes{job="kube-apiserver", instance="cut off"} 9x19 stale
  up{job="kube-apiserver", instance="without"} 1x40
  up{job="kube-apiserver", instance="well"} 1x40
  apiserver_storage_size_bytes{job="kube-apiserver", instance="well"} 9x40

eval range from 95s to 105s step 5s `+s.query(window)+`
  {job="kube-apiserver", instance="cut off"} _ 1 1
`)
	evaluate(t, `
load 5s
  up{job="kube-apiserver", instance="starved"} 1x40
  apiserver_storage_size_bytes{job="kube-apiserver", instance="starved"} 9x19 stale
  stormglass_process_run_delay_seconds_total{job="loadgen", component_instance="loadgen"} 0+5x40
  stormglass_process_timeslices_total{job="loadgen", component_instance="loadgen"} 0+1000x40

eval instant at 105s `+s.query(window)+`
`)
}

// A node that has just joined is not silent; an older one is. In a zone that appeared within a minute all nodes may have
// just joined.
func TestSilentNodesHaveNotJustJoined(t *testing.T) {
	s := known.signal("nodes-silent")
	evaluate(t, `
load 15s
  node_collector_zone_size{job="kube-controller-manager", zone="joins"} 10x40 12x40
  node_collector_unhealthy_nodes_in_zone{job="kube-controller-manager", zone="joins"} 0x40 2x3 0x36
  node_collector_zone_size{job="kube-controller-manager", zone="fails"} 10x80
  node_collector_unhealthy_nodes_in_zone{job="kube-controller-manager", zone="fails"} 0x40 3x40
  node_collector_zone_size{job="kube-controller-manager", zone="both"} 10x40 12x40
  node_collector_unhealthy_nodes_in_zone{job="kube-controller-manager", zone="both"} 0x40 5x3 3x36
  node_collector_zone_size{job="kube-controller-manager", zone="new"} _x40 10x40
  node_collector_unhealthy_nodes_in_zone{job="kube-controller-manager", zone="new"} _x40 3x40

eval range from 615s to 675s step 15s `+s.query(30*time.Second)+`
  {zone="joins"} 0 0 0 0 0
  {zone="fails"} 3 3 3 3 3
  {zone="both"} 3 3 3 3 3
  {zone="new"} 0 0 0 3 3
`)
}

// Requests that follow logs for an hour are not slow reads.
func TestStreamsAreNoReads(t *testing.T) {
	s := known.signal("reads")
	evaluate(t, `
load 5s
  apiserver_request_duration_seconds_sum{job="kube-apiserver", instance="a", verb="GET", subresource=""} 0+1x40
  apiserver_request_duration_seconds_count{job="kube-apiserver", instance="a", verb="GET", subresource=""} 0+100x40
  apiserver_request_duration_seconds_sum{job="kube-apiserver", instance="a", verb="GET", subresource="log"} 0+3600x40
  apiserver_request_duration_seconds_count{job="kube-apiserver", instance="a", verb="GET", subresource="log"} 0+1x40

eval instant at 100s `+s.query(window)+`
  {job="kube-apiserver", instance="a"} 0.01
`)
}

// Round trips are used instead of etcd's own time only if etcd does not expose its own time.
func TestRoundTripsBeforeEtcdTellsItsTime(t *testing.T) {
	s := known.signal("peer-slow")
	evaluate(t, `
load 30s
  etcd_network_peer_round_trip_time_seconds_sum{job="etcd", instance="old", To="b"} 0+0.06x20
  etcd_network_peer_round_trip_time_seconds_count{job="etcd", instance="old", To="b"} 0+1x20
  etcd_network_peer_round_trip_time_seconds_sum{job="etcd", instance="new", To="b"} 0+0.06x20
  etcd_network_peer_round_trip_time_seconds_count{job="etcd", instance="new", To="b"} 0+1x20
  etcd_server_request_duration_seconds_count{job="etcd", instance="new"} 0+9x20

eval instant at 5m `+s.query(window)+`
  {job="etcd", instance="old"} 0.06
`)
}

// A pause of eight seconds between two scrapes makes one scrape last three seconds, which is long for etcd. Less than
// five seconds are not a hang if the process used as much CPU as before. A failed scrape counts in full, because the
// CPU use is unknown then.
func TestHangs(t *testing.T) {
	s := known.signal("hangs")
	evaluate(t, `
load 5s
  up{job="etcd", instance="paused"} 1x40
  scrape_duration_seconds{job="etcd", instance="paused"} 0.1x39 3
  process_cpu_seconds_total{job="etcd", instance="paused"} 0+1x39 39.2
  up{job="kube-apiserver", instance="paused"} 1x40
  scrape_duration_seconds{job="kube-apiserver", instance="paused"} 0.1x39 4
  process_cpu_seconds_total{job="kube-apiserver", instance="paused"} 0+1x39 39.2
  up{job="kube-apiserver", instance="busy"} 1x40
  scrape_duration_seconds{job="kube-apiserver", instance="busy"} 0.1x39 4
  process_cpu_seconds_total{job="kube-apiserver", instance="busy"} 0+1x39 41
  up{job="kube-apiserver", instance="long"} 1x40
  scrape_duration_seconds{job="kube-apiserver", instance="long"} 0.1x39 5
  process_cpu_seconds_total{job="kube-apiserver", instance="long"} 0+1x39 41
  up{job="kube-apiserver", instance="failed"} 1x39 0
  scrape_duration_seconds{job="kube-apiserver", instance="failed"} 0.1x39 10
  process_cpu_seconds_total{job="kube-apiserver", instance="failed"} 0+1x39 stale

eval instant at 200s `+s.query(window)+`
  {job="etcd", instance="paused"} 2.1
  {job="kube-apiserver", instance="paused"} 2.4
  {job="kube-apiserver", instance="busy"} 0
  {job="kube-apiserver", instance="long"} 3
  {job="kube-apiserver", instance="failed"} 10
`)
}

// A slow link delays all requests, a busy machine some, and a slow disk only writes. So only the fastest tenth of the
// requests counts. The signal is the smaller of two times: the time of these reads, and the time by which these writes
// exceed etcd's own time.
func TestLinksAreSeenInTheFastestWrites(t *testing.T) {
	const buckets = `
load 5s
  etcd_server_request_duration_seconds_bucket{job="etcd", instance="etcd-0", type="Txn", le="0.01"} 0+10x20
  etcd_server_request_duration_seconds_bucket{job="etcd", instance="etcd-0", type="Txn", le="0.1"} 0+10x20
  etcd_server_request_duration_seconds_bucket{job="etcd", instance="etcd-0", type="Txn", le="+Inf"} 0+40x20
  etcd_server_request_duration_seconds_bucket{job="etcd", instance="etcd-1", type="Txn", le="0.01"} 0x20
  etcd_server_request_duration_seconds_bucket{job="etcd", instance="etcd-1", type="Txn", le="0.1"} 0+10x20
  etcd_server_request_duration_seconds_bucket{job="etcd", instance="etcd-1", type="Txn", le="+Inf"} 0+10x20
  etcd_server_request_duration_seconds_bucket{job="etcd", instance="etcd-1", type="Range", le="0.01"} 0+90x20
  etcd_server_request_duration_seconds_bucket{job="etcd", instance="etcd-1", type="Range", le="+Inf"} 0+90x20
  etcd_request_duration_seconds_bucket{job="kube-apiserver", instance="near", operation="update", le="0.05"} 0+10x20
  etcd_request_duration_seconds_bucket{job="kube-apiserver", instance="near", operation="update", le="+Inf"} 0+26x20
  etcd_request_duration_seconds_bucket{job="kube-apiserver", instance="far", operation="update", le="0.05"} 0x20
  etcd_request_duration_seconds_bucket{job="kube-apiserver", instance="far", operation="update", le="0.15"} 0+10x20
  etcd_request_duration_seconds_bucket{job="kube-apiserver", instance="far", operation="update", le="+Inf"} 0+10x20
  etcd_request_duration_seconds_bucket{job="kube-apiserver", instance="far", operation="get", le="0.05"} 0x20
  etcd_request_duration_seconds_bucket{job="kube-apiserver", instance="far", operation="get", le="0.15"} 0+90x20
  etcd_request_duration_seconds_bucket{job="kube-apiserver", instance="far", operation="get", le="+Inf"} 0+90x20
  etcd_request_duration_seconds_bucket{job="kube-apiserver", instance="disk", operation="update", le="0.05"} 0x20
  etcd_request_duration_seconds_bucket{job="kube-apiserver", instance="disk", operation="update", le="0.15"} 0+10x20
  etcd_request_duration_seconds_bucket{job="kube-apiserver", instance="disk", operation="update", le="+Inf"} 0+10x20
  etcd_request_duration_seconds_bucket{job="kube-apiserver", instance="disk", operation="get", le="0.05"} 0+90x20
  etcd_request_duration_seconds_bucket{job="kube-apiserver", instance="disk", operation="get", le="+Inf"} 0+90x20
`
	evaluate(t, buckets+`
eval instant at 90s `+known.signal("etcd-own").query(window)+`
  {job="etcd", instance="etcd-0"} 0.004
  {job="etcd", instance="etcd-1"} 0.019

eval instant at 90s `+known.signal("etcd-link").query(window)+`
  {job="kube-apiserver", instance="near"} -0.006
  {job="kube-apiserver", instance="far"} 0.041
  {job="kube-apiserver", instance="disk"} 0.005
`)
}

// A process is out of open files if it responds and can no longer read its limits, even if the kernel still reports its
// number of files.
func TestDescriptorsOut(t *testing.T) {
	s := known.signal("descriptors-out")
	evaluate(t, `
load 5s
  up{job="kube-apiserver", instance="old kernel"} 1x20
  process_open_fds{job="kube-apiserver", instance="old kernel"} 900x9 stale _x10
  process_max_fds{job="kube-apiserver", instance="old kernel"} 1024x9 stale _x10
  up{job="kube-apiserver", instance="new kernel"} 1x20
  process_open_fds{job="kube-apiserver", instance="new kernel"} 900x9 1024x10
  process_max_fds{job="kube-apiserver", instance="new kernel"} 1024x9 stale _x10
  up{job="kube-apiserver", instance="away"} 1x9 0x10
  process_max_fds{job="kube-apiserver", instance="away"} 1024x9 stale _x10
  up{job="kube-apiserver", instance="never told"} 1x20
  up{job="kube-apiserver", instance="well"} 1x20
  process_max_fds{job="kube-apiserver", instance="well"} 1024x20

eval range from 40s to 60s step 10s `+s.query(window)+`
  {job="kube-apiserver", instance="old kernel"} _ 1 1
  {job="kube-apiserver", instance="new kernel"} _ 1 1
`)
}

// A killed run is diagnosed to its last scrape. A run that ended in order is diagnosed to its last boundary, at which
// all targets are scraped.
func TestKilledRunIsDiagnosedToItsEnd(t *testing.T) {
	a := archive.Evaluating(promqltest.LoadedStorage(t, `
load 5s
  up{job="kube-apiserver", instance="kube-apiserver-0"} 1x70
  process_start_time_seconds{job="kube-apiserver", instance="kube-apiserver-0"} 7x70

load 7s
  up{job="etcd", instance="etcd-0"} 1x55
  process_start_time_seconds{job="etcd", instance="etcd-0"} 7x51 357x3
`))
	for cut, want := range map[bool]struct {
		end    time.Duration
		answer string
	}{false: {350 * time.Second, result.CannotTell}, true: {385 * time.Second, result.Diagnosed}} {
		d, err := OfArchive(t.Context(), a, Options{Cut: cut, Step: 5 * time.Second})
		if err != nil || !d.Under.To.Equal(time.Unix(0, 0).Add(want.end)) || d.Answer != want.answer {
			t.Errorf("cut %t: %s until %s, want %s until %s: %v", cut, d.Answer, d.Under.To, want.answer, want.end, err)
		}
	}
}

// A run with trouble from its first scrape on has no comparison period. A reference run takes its place.
func TestReferenceRun(t *testing.T) {
	recorded := func(fsync string) *archive.Archive {
		return archive.Evaluating(promqltest.LoadedStorage(t, `
load 5s
  up{job="kube-apiserver", instance="kube-apiserver-0"} 1x70
  process_start_time_seconds{job="kube-apiserver", instance="kube-apiserver-0"} 7x70
  up{job="etcd", instance="etcd-0"} 1x70
  etcd_disk_wal_fsync_duration_seconds_count{job="etcd", instance="etcd-0"} 0+100x70
  etcd_disk_wal_fsync_duration_seconds_sum{job="etcd", instance="etcd-0"} 0+`+fsync+`x70
`))
	}
	slow := recorded("0.8")
	for name, c := range map[string]struct {
		reference *archive.Archive
		causes    string
	}{"alone": {nil, ""}, "next to a good run": {recorded("0.06"), "slow-wal-fsync of etcd-0"}} {
		d, err := OfArchive(t.Context(), slow, Options{Step: 5 * time.Second, Reference: c.reference})
		if err != nil || causesOf(d) != c.causes || d.Answer == result.Healthy {
			t.Errorf("%s: %s, %s: %v", name, d.Answer, causesOf(d), err)
		}
	}
}

// A workload that lacks pods makes no progress while its number of pods stays the same.
func TestWorkloadWithoutProgress(t *testing.T) {
	evaluate(t, `
load 5s
  stormglass_workload_pods_missing{job="loadgen", workload="stuck", kind="Deployment"} 0x9 20x30
  stormglass_workload_pods_missing{job="loadgen", workload="rolls", kind="Deployment"} 0x9 20 18 15 12 9 7 5 4 3 2 1 0x20

eval range from 65s to 85s step 5s `+known.signal("workload-stalled").query(window)+`
  {workload="stuck"} 20 20 20 20 20
  {workload="rolls"} 0 0 0 0 0
`)
}

// A scrape at the boundary of a phase comes between two others, and a scrape of a busy machine comes late. A machine
// that is full before and after such a scrape is also full at this scrape.
func TestMachineIsFullAtBoundaries(t *testing.T) {
	evaluate(t, `
load 1s
  stormglass_machine_busy_seconds_total{job="loadgen"} 20 _ _ _ _ 30 _ _ _ _ 40 _ _ _ 48 _x11
  stormglass_machine_own_seconds_total{job="loadgen"} 0 _ _ _ _ 5 _ _ _ _ 10 _ _ _ 14 _x11
  stormglass_machine_processors{job="loadgen"} 2x25

eval instant at 15s `+known.signal("machine-busy").query(window)+`
  {job="loadgen"} 1

eval instant at 21s `+known.signal("machine-busy").query(window)+`
  {job="loadgen"} 1

eval instant at 15s `+known.signal("machine-others").query(window)+`
  {job="loadgen"} 0.5
`)
}
