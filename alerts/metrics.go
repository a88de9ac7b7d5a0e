package alerts

import (
	"slices"
	"strings"
)

// Family is a metric that a rule reads.
type Family struct {
	// Name as it is exposed, without the suffixes of a histogram's series.
	Name string
	// Type is "counter", "gauge" or "histogram".
	Type string
	// Labels it has besides those of its target.
	Labels []string
	// Source is the Go file that declares it, by import path. A test reads
	// that file and compares name, type and labels. Empty: it comes from
	// Prometheus' own libraries.
	Source string
}

const (
	apiMetrics       = "k8s.io/apiserver/pkg/endpoints/metrics/metrics.go"
	flowMetrics      = "k8s.io/apiserver/pkg/util/flowcontrol/metrics/metrics.go"
	cacherMetrics    = "k8s.io/apiserver/pkg/storage/cacher/metrics/metrics.go"
	listMetrics      = "k8s.io/apiserver/pkg/storage/metrics/metrics.go"
	storageMetrics   = "k8s.io/apiserver/pkg/storage/etcd3/metrics/metrics.go"
	admissionMetrics = "k8s.io/apiserver/pkg/admission/metrics/metrics.go"
	schedulerMetrics = "k8s.io/kubernetes/pkg/scheduler/metrics/metrics.go"
	nodeMetrics      = "k8s.io/kubernetes/pkg/controller/nodelifecycle/metrics.go"
	taintMetrics     = "k8s.io/kubernetes/pkg/controller/tainteviction/metrics/metrics.go"
	queueMetrics     = "k8s.io/component-base/metrics/prometheus/workqueue/metrics.go"
	clientMetrics    = "k8s.io/component-base/metrics/prometheus/restclient/metrics.go"
	leaseMetrics     = "k8s.io/component-base/metrics/prometheus/clientgo/leaderelection/metrics.go"
	etcdServer       = "go.etcd.io/etcd/server/v3/"
	own              = "github.com/stormglass/stormglass/loadgen/"
)

// Families is all metrics that the rules read, sorted by name. A recorder that
// keeps only what it knows has to keep these.
func Families() []Family {
	words := strings.Fields
	all := []Family{
		{"up", "gauge", nil, ""},
		{"process_open_fds", "gauge", nil, ""},
		{"process_max_fds", "gauge", nil, ""},
		{"process_cpu_seconds_total", "counter", nil, ""},

		{"etcd_disk_wal_fsync_duration_seconds", "histogram", nil, etcdServer + "storage/wal/metrics.go"},
		{"etcd_disk_backend_commit_duration_seconds", "histogram", nil, etcdServer + "storage/backend/metrics.go"},
		{"etcd_mvcc_db_total_size_in_bytes", "gauge", nil, etcdServer + "storage/mvcc/metrics.go"},
		{"etcd_server_quota_backend_bytes", "gauge", nil, etcdServer + "storage/metrics.go"},
		{"etcd_server_leader_changes_seen_total", "counter", nil, etcdServer + "etcdserver/metrics.go"},
		{"etcd_server_has_leader", "gauge", nil, etcdServer + "etcdserver/metrics.go"},
		{"grpc_server_handled_total", "counter", words("grpc_type grpc_service grpc_method grpc_code"), ""},
		{"etcd_debugging_server_alarms", "gauge", words("server_id alarm_type"), etcdServer + "etcdserver/apply/metrics.go"},
		{"etcd_network_peer_round_trip_time_seconds", "histogram", words("To"), etcdServer + "etcdserver/api/rafthttp/metrics.go"},

		{"apiserver_request_duration_seconds", "histogram", words("verb dry_run group version resource subresource scope component"), apiMetrics},
		{"apiserver_request_total", "counter", words("verb dry_run group version resource subresource scope component code"), apiMetrics},
		{"apiserver_longrunning_requests", "gauge", words("verb group version resource subresource scope component"), apiMetrics},
		{"apiserver_watch_events_total", "counter", words("group version resource"), apiMetrics},
		{"apiserver_flowcontrol_request_wait_duration_seconds", "histogram", words("priority_level flow_schema execute"), flowMetrics},
		{"apiserver_flowcontrol_rejected_requests_total", "counter", words("priority_level flow_schema reason"), flowMetrics},
		{"apiserver_terminated_watchers_total", "counter", words("group resource"), cacherMetrics},
		{"apiserver_watch_events_dispatch_duration_seconds", "histogram", words("group resource stage"), cacherMetrics},
		{"apiserver_storage_list_fetched_objects_total", "counter", words("group resource storage index"), listMetrics},
		{"etcd_request_duration_seconds", "histogram", words("operation group resource"), storageMetrics},
		{"apiserver_admission_webhook_admission_duration_seconds", "histogram", words("name type operation rejected"), admissionMetrics},
		{"apiserver_admission_webhook_fail_open_count", "counter", words("name type"), admissionMetrics},
		{"apiserver_admission_webhook_rejection_count", "counter", words("name type operation error_type rejection_code"), admissionMetrics},

		{"scheduler_scheduling_attempt_duration_seconds", "histogram", words("result profile"), schedulerMetrics},
		{"scheduler_pending_pods", "gauge", words("queue"), schedulerMetrics},

		{"workqueue_depth", "gauge", words("name"), queueMetrics},
		{"workqueue_queue_duration_seconds", "histogram", words("name"), queueMetrics},
		{"rest_client_rate_limiter_duration_seconds", "histogram", words("verb host"), clientMetrics},
		{"leader_election_master_status", "gauge", words("name"), leaseMetrics},
		{"node_collector_unhealthy_nodes_in_zone", "gauge", words("zone"), nodeMetrics},
		{"node_collector_zone_size", "gauge", words("zone"), nodeMetrics},
		{"taint_eviction_controller_pod_deletions_total", "counter", nil, taintMetrics},

		{"stormglass_scheduling_lag_seconds", "histogram", nil, own + "internal/generator/self.go"},
		{"stormglass_request_lag_seconds", "histogram", words("load"), own + "internal/load/request/metrics.go"},
		{"stormglass_requests_unsent_total", "counter", words("load verb resource"), own + "internal/load/request/metrics.go"},
	}
	slices.SortFunc(all, func(a, b Family) int { return strings.Compare(a.Name, b.Name) })
	return all
}
