package source

import "github.com/stormglass/stormglass/dashboards"

// Why a query may be empty. Each names what would have to be in the recording
// for the excuse to fall.
var (
	loneMember = dashboards.Reason{Text: "A single etcd member has no peers.", Unless: `count(up{job="etcd"}) > 1`}
	// Only a failure makes the series, on a link that may not even exist.
	noSendError = dashboards.Reason{Text: "No message to a peer has failed: good.", Unless: `etcd_network_peer_sent_failures_total > 0`}
	noWebhook   = dashboards.Reason{Text: "No admission webhook was asked.", Unless: `apiserver_admission_webhook_admission_duration_seconds_count > 0`}
	noOpen      = dashboards.Reason{Text: "No webhook has failed open: good.", Unless: `apiserver_admission_webhook_fail_open_count > 0`}
	noVeto      = dashboards.Reason{Text: "No webhook has refused anything: good.", Unless: `apiserver_admission_webhook_rejection_count > 0`}
	noReject    = dashboards.Reason{Text: "Priority and fairness has rejected nothing: good.", Unless: `apiserver_flowcontrol_rejected_requests_total > 0`}
	noRefusal   = dashboards.Reason{Text: "No answer with a 4xx or 5xx code: good.", Unless: `apiserver_request_total{code=~"[45].."} > 0`}
	noTerminate = dashboards.Reason{Text: "No watch was ended for being slow: good.", Unless: `apiserver_terminated_watchers_total > 0`}
	noRelist    = dashboards.Reason{Text: "No watch asked for initial events.", Unless: `apiserver_init_events_total > 0`}
	noEtcdError = dashboards.Reason{Text: "No call to etcd failed: good.", Unless: `etcd_request_errors_total > 0`}
	noLists     = dashboards.Reason{Text: "There were no LISTs.", Unless: `increase(apiserver_request_total{verb="LIST"}[1m]) > 0`}
	noPods      = dashboards.Reason{Text: "Nothing was scheduled.", Unless: `increase(scheduler_schedule_attempts_total[1m]) > 0`}
	noSample    = dashboards.Reason{Text: "No attempt was measured: the scheduler measures one in ten.", Unless: `scheduler_plugin_execution_duration_seconds_count{extension_point!~".*Bind.*"} > 0`}
	noLeftOver  = dashboards.Reason{Text: "Every pod has found a node: good.", Unless: `scheduler_unschedulable_pods > 0`}
	noNodes     = dashboards.Reason{Text: "The controller manager knows no nodes.", Unless: `node_collector_zone_size > 0`}
	noSlices    = dashboards.Reason{Text: "No EndpointSlice has changed.", Unless: `endpoint_slice_controller_changes > 0`}
	noKubelets  = dashboards.Reason{Text: "No simulated nodes.", Unless: `stormglass_nodes_ready > 0`}
	noStart     = dashboards.Reason{Text: "No pod has become Ready.", Unless: `increase(stormglass_pod_startup_seconds_count[1m]) > 0`}
	noRollout   = dashboards.Reason{Text: "Nothing was rolled out.", Unless: `stormglass_workload_rollout_hop_seconds`}
	noRequests  = dashboards.Reason{Text: "The run sends no requests of its own.", Unless: `increase(stormglass_requests_total[1m]) > 0`}
	noLosses    = dashboards.Reason{Text: "Every request got an answer of 2xx: good.", Unless: `stormglass_requests_total{code!~"2.."} > 0`}
	noWatches   = dashboards.Reason{Text: "The run opens no watches of its own.", Unless: `stormglass_watches_open > 0`}
	noWanted    = dashboards.Reason{Text: "The run deploys no pods.", Unless: `stormglass_workload_pods_wanted > 0`}
	// Deliveries to slow consumers are counted, and not timed: they are late on purpose.
	noDelivery  = dashboards.Reason{Text: "No delivery was timed: the run's watches are for no measured writes, or slow on purpose.", Unless: `increase(stormglass_watch_delivery_seconds_count[1m]) > 0`}
	noFaults    = dashboards.Reason{Text: "No fault was brought about.", Unless: `stormglass_fault_begin_timestamp_seconds`}
	noMarks     = dashboards.Reason{Text: "Recorded by a version that did not export phases.", Unless: `stormglass_phase_active`}
	noAlerts    = dashboards.Reason{Text: "No alert fires, or no rules are evaluated here: in the archive of a run there are none, its gates tell.", Unless: `ALERTS{alertstate="firing"}`}
	noLease     = dashboards.Reason{Text: "No Lease was written.", Unless: `increase(apiserver_request_total{resource="leases", verb="PUT"}[1m]) > 0`}
	noRateLimit = dashboards.Reason{Text: "No client has a rate limiter.", Unless: `rest_client_rate_limiter_duration_seconds_count > 0`}
)
