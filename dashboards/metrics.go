package dashboards

import (
	"slices"
	"strings"

	"github.com/stormglass/stormglass/alerts"
)

const (
	apiMetrics       = "k8s.io/apiserver/pkg/endpoints/metrics/metrics.go"
	filterMetrics    = "k8s.io/apiserver/pkg/endpoints/filters/metrics.go"
	authMetrics      = "k8s.io/apiserver/pkg/authorization/metrics/metrics.go"
	flowMetrics      = "k8s.io/apiserver/pkg/util/flowcontrol/metrics/metrics.go"
	cacherMetrics    = "k8s.io/apiserver/pkg/storage/cacher/metrics/metrics.go"
	listMetrics      = "k8s.io/apiserver/pkg/storage/metrics/metrics.go"
	storageMetrics   = "k8s.io/apiserver/pkg/storage/etcd3/metrics/metrics.go"
	admissionMetrics = "k8s.io/apiserver/pkg/admission/metrics/metrics.go"
	schedulerMetrics = "k8s.io/kubernetes/pkg/scheduler/metrics/metrics.go"
	sliceMetrics     = "k8s.io/endpointslice/metrics/metrics.go"
	queueMetrics     = "k8s.io/component-base/metrics/prometheus/workqueue/metrics.go"
	clientMetrics    = "k8s.io/component-base/metrics/prometheus/restclient/metrics.go"
	etcdServer       = "go.etcd.io/etcd/server/v3/"
	own              = "github.com/stormglass/stormglass/loadgen/"
)

// Families is all metrics that the dashboards read and no rule of package
// alerts does, sorted by name. Those without a Source are declared by
// Prometheus' own libraries, or in a way that is not read from source (with
// helpers); a recording of a real run is held against them.
func Families() []alerts.Family {
	words := strings.Fields
	all := []alerts.Family{
		{Name: "ALERTS", Type: "gauge", Labels: words("alertname alertstate")},
		{Name: "scrape_duration_seconds", Type: "gauge"},
		{Name: "process_resident_memory_bytes", Type: "gauge"},
		{Name: "go_goroutines", Type: "gauge"},
		{Name: "go_memstats_heap_inuse_bytes", Type: "gauge"},
		{Name: "go_sched_latencies_seconds", Type: "histogram"},

		{Name: "etcd_debugging_mvcc_keys_total", Type: "gauge", Source: etcdServer + "storage/mvcc/metrics.go"},
		{Name: "etcd_debugging_mvcc_pending_events_total", Type: "gauge", Source: etcdServer + "storage/mvcc/metrics.go"},
		{Name: "etcd_debugging_mvcc_slow_watcher_total", Type: "gauge", Source: etcdServer + "storage/mvcc/metrics.go"},
		{Name: "etcd_debugging_mvcc_watcher_total", Type: "gauge", Source: etcdServer + "storage/mvcc/metrics.go"},
		{Name: "etcd_disk_wal_write_bytes_total", Type: "gauge", Source: etcdServer + "storage/wal/metrics.go"},
		{Name: "etcd_mvcc_db_total_size_in_use_in_bytes", Type: "gauge", Source: etcdServer + "storage/mvcc/metrics.go"},
		{Name: "etcd_mvcc_delete_total", Type: "counter", Source: etcdServer + "storage/mvcc/metrics.go"},
		{Name: "etcd_mvcc_put_total", Type: "counter", Source: etcdServer + "storage/mvcc/metrics.go"},
		{Name: "etcd_mvcc_range_total", Type: "counter", Source: etcdServer + "storage/mvcc/metrics.go"},
		{Name: "etcd_mvcc_txn_total", Type: "counter", Source: etcdServer + "storage/mvcc/metrics.go"},
		{Name: "etcd_network_client_grpc_received_bytes_total", Type: "counter", Source: etcdServer + "etcdserver/api/v3rpc/metrics.go"},
		{Name: "etcd_network_client_grpc_sent_bytes_total", Type: "counter", Source: etcdServer + "etcdserver/api/v3rpc/metrics.go"},
		{Name: "etcd_network_peer_sent_failures_total", Type: "counter", Labels: words("To"), Source: etcdServer + "etcdserver/api/rafthttp/metrics.go"},
		{Name: "etcd_server_apply_duration_seconds", Type: "histogram", Labels: words("version op success"), Source: etcdServer + "etcdserver/txn/metrics.go"},
		{Name: "etcd_server_heartbeat_send_failures_total", Type: "counter", Source: etcdServer + "etcdserver/metrics.go"},
		{Name: "etcd_server_is_leader", Type: "gauge", Source: etcdServer + "etcdserver/metrics.go"},
		{Name: "etcd_server_proposals_committed_total", Type: "gauge", Source: etcdServer + "etcdserver/metrics.go"},
		{Name: "etcd_server_proposals_failed_total", Type: "counter", Source: etcdServer + "etcdserver/metrics.go"},
		{Name: "etcd_server_proposals_pending", Type: "gauge", Source: etcdServer + "etcdserver/metrics.go"},
		{Name: "etcd_server_request_duration_seconds", Type: "histogram", Labels: words("type success"), Source: etcdServer + "etcdserver/metrics.go"},

		{Name: "apiserver_admission_step_admission_duration_seconds", Type: "histogram", Labels: words("type operation rejected"), Source: admissionMetrics},
		{Name: "apiserver_authorization_decisions_total", Type: "counter", Labels: words("type name decision"), Source: authMetrics},
		{Name: "apiserver_current_inflight_requests", Type: "gauge", Labels: words("request_kind"), Source: apiMetrics},
		{Name: "apiserver_flowcontrol_current_executing_seats", Type: "gauge", Labels: words("priority_level flow_schema"), Source: flowMetrics},
		{Name: "apiserver_flowcontrol_current_inqueue_requests", Type: "gauge", Labels: words("priority_level flow_schema"), Source: flowMetrics},
		{Name: "apiserver_flowcontrol_current_limit_seats", Type: "gauge", Labels: words("priority_level"), Source: flowMetrics},
		{Name: "apiserver_init_events_total", Type: "counter", Labels: words("group resource"), Source: cacherMetrics},
		{Name: "apiserver_resource_objects", Type: "gauge", Labels: words("group resource"), Source: storageMetrics},
		{Name: "apiserver_response_sizes", Type: "histogram", Labels: words("verb group version resource subresource scope component"), Source: apiMetrics},
		{Name: "apiserver_storage_list_returned_objects_total", Type: "counter", Labels: words("group resource storage"), Source: listMetrics},
		{Name: "apiserver_storage_size_bytes", Type: "gauge", Labels: words("storage_cluster_id")},
		{Name: "apiserver_tls_handshake_errors_total", Type: "counter", Source: apiMetrics},
		{Name: "apiserver_watch_events_sizes", Type: "histogram", Labels: words("group version resource"), Source: apiMetrics},
		{Name: "authentication_attempts", Type: "counter", Labels: words("result"), Source: filterMetrics},
		{Name: "etcd_request_errors_total", Type: "counter", Labels: words("operation group resource"), Source: storageMetrics},

		{Name: "scheduler_cache_size", Type: "gauge", Labels: words("type"), Source: schedulerMetrics},
		{Name: "scheduler_framework_extension_point_duration_seconds", Type: "histogram", Labels: words("extension_point status profile"), Source: schedulerMetrics},
		{Name: "scheduler_plugin_evaluation_total", Type: "counter", Labels: words("plugin extension_point profile"), Source: schedulerMetrics},
		{Name: "scheduler_plugin_execution_duration_seconds", Type: "histogram", Labels: words("plugin extension_point status"), Source: schedulerMetrics},
		{Name: "scheduler_pod_scheduling_sli_duration_seconds", Type: "histogram", Labels: words("attempts"), Source: schedulerMetrics},
		{Name: "scheduler_preemption_attempts_total", Type: "counter", Source: schedulerMetrics},
		{Name: "scheduler_preemption_victims", Type: "histogram", Source: schedulerMetrics},
		{Name: "scheduler_queue_incoming_pods_total", Type: "counter", Labels: words("queue event"), Source: schedulerMetrics},
		{Name: "scheduler_schedule_attempts_total", Type: "counter", Labels: words("result profile"), Source: schedulerMetrics},
		{Name: "scheduler_scheduling_algorithm_duration_seconds", Type: "histogram", Source: schedulerMetrics},
		{Name: "scheduler_unschedulable_pods", Type: "gauge", Labels: words("plugin profile"), Source: schedulerMetrics},

		{Name: "endpoint_slice_controller_changes", Type: "counter", Labels: words("operation"), Source: sliceMetrics},
		{Name: "rest_client_request_duration_seconds", Type: "histogram", Labels: words("verb host"), Source: clientMetrics},
		{Name: "rest_client_requests_total", Type: "counter", Labels: words("code method host"), Source: clientMetrics},
		{Name: "workqueue_adds_total", Type: "counter", Labels: words("name"), Source: queueMetrics},
		{Name: "workqueue_longest_running_processor_seconds", Type: "gauge", Labels: words("name"), Source: queueMetrics},
		{Name: "workqueue_retries_total", Type: "counter", Labels: words("name"), Source: queueMetrics},
		{Name: "workqueue_work_duration_seconds", Type: "histogram", Labels: words("name"), Source: queueMetrics},

		{Name: "stormglass_phase_active", Type: "gauge", Labels: words("phase")},
		{Name: "stormglass_fault_active", Type: "gauge", Labels: words("fault on")},
		{Name: "stormglass_fault_begin_timestamp_seconds", Type: "gauge", Labels: words("fault on")},
		{Name: "stormglass_node_heartbeat_seconds", Type: "histogram", Source: own + "internal/node/ledger.go"},
		{Name: "stormglass_node_heartbeats_missed_total", Type: "counter", Labels: words("cause")},
		{Name: "stormglass_node_pods_running", Type: "gauge"},
		{Name: "stormglass_node_requests_total", Type: "counter", Labels: words("verb resource code"), Source: own + "internal/node/ledger.go"},
		{Name: "stormglass_node_watch_restarts_total", Type: "counter", Labels: words("kind")},
		{Name: "stormglass_node_watches", Type: "gauge"},
		{Name: "stormglass_nodes_ready", Type: "gauge"},
		{Name: "stormglass_pod_startup_seconds", Type: "histogram", Source: own + "internal/workload/metrics.go"},
		{Name: "stormglass_request_seconds", Type: "histogram", Labels: words("load verb resource"), Source: own + "internal/load/request/metrics.go"},
		{Name: "stormglass_requests_total", Type: "counter", Labels: words("code load verb resource")},
		{Name: "stormglass_watch_bytes_total", Type: "counter", Labels: words("load")},
		{Name: "stormglass_watch_delivered_total", Type: "counter", Labels: words("load")},
		{Name: "stormglass_watch_delivery_seconds", Type: "histogram", Labels: words("load")},
		{Name: "stormglass_watch_duplicated_total", Type: "counter", Labels: words("load")},
		{Name: "stormglass_watch_events_total", Type: "counter", Labels: words("load")},
		{Name: "stormglass_watch_lost_total", Type: "counter", Labels: words("load")},
		{Name: "stormglass_watch_reconnects_total", Type: "counter", Labels: words("load")},
		{Name: "stormglass_watch_relists_total", Type: "counter", Labels: words("load")},
		{Name: "stormglass_watch_reordered_total", Type: "counter", Labels: words("load")},
		{Name: "stormglass_watches_open", Type: "gauge", Labels: words("load")},
		{Name: "stormglass_workload_nodes_ready", Type: "gauge"},
		{Name: "stormglass_workload_pods_pending", Type: "gauge"},
		{Name: "stormglass_workload_pods_ready", Type: "gauge"},
		{Name: "stormglass_workload_pods_terminating", Type: "gauge"},
		{Name: "stormglass_workload_pods_unscheduled", Type: "gauge"},
		{Name: "stormglass_workload_pods_wanted", Type: "gauge"},
		{Name: "stormglass_workload_rollout_hop_seconds", Type: "gauge", Labels: words("deployment hop piece")},
	}
	slices.SortFunc(all, func(a, b alerts.Family) int { return strings.Compare(a.Name, b.Name) })
	return all
}
