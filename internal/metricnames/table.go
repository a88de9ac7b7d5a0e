package metricnames

const (
	admissionMetrics = "k8s.io/apiserver/pkg/admission/metrics/metrics.go"
	apiMetrics       = "k8s.io/apiserver/pkg/endpoints/metrics/metrics.go"
	authMetrics      = "k8s.io/apiserver/pkg/authorization/metrics/metrics.go"
	cacherMetrics    = "k8s.io/apiserver/pkg/storage/cacher/metrics/metrics.go"
	clientMetrics    = "k8s.io/component-base/metrics/prometheus/restclient/metrics.go"
	etcdServer       = "go.etcd.io/etcd/server/v3/"
	filterMetrics    = "k8s.io/apiserver/pkg/endpoints/filters/metrics.go"
	flowMetrics      = "k8s.io/apiserver/pkg/util/flowcontrol/metrics/metrics.go"
	leaseMetrics     = "k8s.io/component-base/metrics/prometheus/clientgo/leaderelection/metrics.go"
	listMetrics      = "k8s.io/apiserver/pkg/storage/metrics/metrics.go"
	nodeMetrics      = "k8s.io/kubernetes/pkg/controller/nodelifecycle/metrics.go"
	queueMetrics     = "k8s.io/component-base/metrics/prometheus/workqueue/metrics.go"
	schedulerMetrics = "k8s.io/kubernetes/pkg/scheduler/metrics/metrics.go"
	sliceMetrics     = "k8s.io/endpointslice/metrics/metrics.go"
	storageMetrics   = "k8s.io/apiserver/pkg/storage/etcd3/metrics/metrics.go"
	taintMetrics     = "k8s.io/kubernetes/pkg/controller/tainteviction/metrics/metrics.go"
	own              = "github.com/stormglass/stormglass/loadgen/internal/"
)

type row struct {
	name, kind, labels, source string
	of                         Component
	by                         Reader
}

// table lists every metric once. Left out of what is recorded, by size: request
// body sizes, field validation, feature flags, most of the watch cache's
// histograms per resource.
func table() []row {
	return []row{
		// Of every process.
		{"process_cpu_seconds_total", "counter", "", "", Process, Rules},
		{"process_resident_memory_bytes", "gauge", "", "", Process, Dashboards},
		{"process_open_fds", "gauge", "", "", Process, Rules},
		{"process_max_fds", "gauge", "", "", Process, Rules},
		{"process_start_time_seconds", "", "", "", Process, Diagnosis},
		{"process_network_receive_bytes_total", "", "", "", Process, Diagnosis},
		{"process_network_transmit_bytes_total", "", "", "", Process, Diagnosis},
		{"go_goroutines", "gauge", "", "", Process, Dashboards},
		{"go_threads", "", "", "", Process, Diagnosis},
		{"go_gc_duration_seconds", "", "", "", Process, Diagnosis},
		{"go_memstats_heap_inuse_bytes", "gauge", "", "", Process, Dashboards},
		{"go_memstats_heap_alloc_bytes", "", "", "", Process, Diagnosis},
		{"go_memstats_alloc_bytes_total", "", "", "", Process, Diagnosis},
		{"go_memstats_next_gc_bytes", "", "", "", Process, Diagnosis},
		// How long goroutines wait for a CPU: tells a starved component from a busy one.
		{"go_sched_latencies_seconds", "histogram", "", "", Process, Dashboards},

		// Of every Kubernetes component.
		{"kubernetes_build_info", "", "", "", Kube, Diagnosis},
		{"rest_client_requests_total", "counter", "code method host", clientMetrics, Kube, Dashboards},
		{"rest_client_request_duration_seconds", "histogram", "verb host", clientMetrics, Kube, Dashboards},
		{"rest_client_rate_limiter_duration_seconds", "histogram", "verb host", clientMetrics, Kube, Rules},
		{"rest_client_request_retries_total", "", "", "", Kube, Diagnosis},
		{"workqueue_*", "", "", "", Kube, Diagnosis},
		{"leader_election_*", "", "", "", Kube, Diagnosis},
		{"informer_queued_items", "", "", "", Kube, Diagnosis},
		{"workqueue_depth", "gauge", "name", queueMetrics, Kube, Rules},
		{"workqueue_queue_duration_seconds", "histogram", "name", queueMetrics, Kube, Rules},
		{"leader_election_master_status", "gauge", "name", leaseMetrics, Kube, Rules},
		{"workqueue_adds_total", "counter", "name", queueMetrics, Kube, Dashboards},
		{"workqueue_longest_running_processor_seconds", "gauge", "name", queueMetrics, Kube, Dashboards},
		{"workqueue_retries_total", "counter", "name", queueMetrics, Kube, Dashboards},
		{"workqueue_work_duration_seconds", "histogram", "name", queueMetrics, Kube, Dashboards},

		// Of API servers.
		{"apiserver_request_duration_seconds", "histogram", "verb dry_run group version resource subresource scope component", apiMetrics, APIServer, Rules},
		{"apiserver_request_sli_duration_seconds", "", "", "", APIServer, Diagnosis},
		{"apiserver_request_total", "counter", "verb dry_run group version resource subresource scope component code", apiMetrics, APIServer, Rules},
		{"apiserver_request_terminations_total", "", "", "", APIServer, Diagnosis},
		{"apiserver_request_aborts_total", "", "", "", APIServer, Diagnosis},
		{"apiserver_request_filter_duration_seconds", "", "", "", APIServer, Diagnosis},
		{"apiserver_current_inflight_requests", "gauge", "request_kind", apiMetrics, APIServer, Dashboards},
		{"apiserver_current_inqueue_requests", "", "", "", APIServer, Diagnosis},
		{"apiserver_longrunning_requests", "gauge", "verb group version resource subresource scope component", apiMetrics, APIServer, Rules},
		{"apiserver_response_sizes", "histogram", "verb group version resource subresource scope component", apiMetrics, APIServer, Dashboards},
		{"apiserver_flowcontrol_*", "", "", "", APIServer, Diagnosis},
		{"apiserver_tls_handshake_errors_total", "counter", "", apiMetrics, APIServer, Dashboards},
		// Watches and the cache they are served from.
		{"apiserver_watch_events_total", "counter", "group version resource", apiMetrics, APIServer, Rules},
		{"apiserver_watch_events_sizes", "histogram", "group version resource", apiMetrics, APIServer, Dashboards},
		{"apiserver_watch_events_dispatch_duration_seconds", "histogram", "group resource stage", cacherMetrics, APIServer, Rules},
		{"apiserver_watch_cache_events_dispatched_total", "", "", "", APIServer, Diagnosis},
		{"apiserver_watch_cache_events_received_total", "", "", "", APIServer, Diagnosis},
		{"apiserver_watch_cache_initializations_total", "", "", "", APIServer, Diagnosis},
		{"apiserver_watch_cache_read_wait_seconds", "", "", "", APIServer, Diagnosis},
		// a part of LIST and GET in package breakdown
		{"apiserver_watch_cache_consistent_read_total", "", "", "", APIServer, Diagnosis},
		{"apiserver_terminated_watchers_total", "counter", "group resource", cacherMetrics, APIServer, Rules},
		{"apiserver_init_events_total", "counter", "group resource", cacherMetrics, APIServer, Dashboards},
		{"apiserver_cache_list_total", "", "", "", APIServer, Diagnosis},
		{"apiserver_cache_list_fetched_objects_total", "", "", "", APIServer, Diagnosis},
		{"apiserver_cache_list_returned_objects_total", "", "", "", APIServer, Diagnosis},
		{"watch_cache_capacity", "", "", "", APIServer, Diagnosis},
		// Between the API server and etcd.
		{"etcd_request_duration_seconds", "histogram", "operation group resource", storageMetrics, APIServer, Rules},
		{"etcd_requests_total", "", "", "", APIServer, Diagnosis},
		{"etcd_request_errors_total", "counter", "operation group resource", storageMetrics, APIServer, Dashboards},
		{"etcd_bookmark_total", "", "", "", APIServer, Diagnosis},
		{"etcd_lease_object_counts", "", "", "", APIServer, Diagnosis},
		{"apiserver_storage_objects", "", "", "", APIServer, Diagnosis},
		{"apiserver_storage_size_bytes", "gauge", "storage_cluster_id", "", APIServer, Dashboards},
		{"apiserver_resource_objects", "gauge", "group resource", storageMetrics, APIServer, Dashboards},
		{"apiserver_resource_size_estimate_bytes", "", "", "", APIServer, Diagnosis},
		{"apiserver_storage_list_*", "", "", "", APIServer, Diagnosis},
		{"apiserver_storage_events_received_total", "", "", "", APIServer, Diagnosis},
		// Admission, authentication, authorization, audit, aggregation.
		{"apiserver_admission_*", "", "", "", APIServer, Diagnosis},
		{"authentication_attempts", "counter", "result", filterMetrics, APIServer, Dashboards},
		{"authentication_duration_seconds", "", "", "", APIServer, Diagnosis},
		{"authorization_attempts_total", "", "", "", APIServer, Diagnosis},
		{"authorization_duration_seconds", "", "", "", APIServer, Diagnosis},
		{"apiserver_authorization_decisions_total", "counter", "type name decision", authMetrics, APIServer, Dashboards},
		{"apiserver_audit_event_total", "", "", "", APIServer, Diagnosis},
		{"apiserver_audit_error_total", "", "", "", APIServer, Diagnosis},
		{"apiserver_audit_requests_rejected_total", "", "", "", APIServer, Diagnosis},
		{"aggregator_unavailable_apiservice*", "", "", "", APIServer, Diagnosis},
		{"apiserver_client_certificate_expiration_seconds", "", "", "", APIServer, Diagnosis},
		{"apiserver_envelope_encryption_*", "", "", "", APIServer, Diagnosis},
		{"apiserver_flowcontrol_request_wait_duration_seconds", "histogram", "priority_level flow_schema execute", flowMetrics, APIServer, Rules},
		{"apiserver_flowcontrol_rejected_requests_total", "counter", "priority_level flow_schema reason", flowMetrics, APIServer, Rules},
		{"apiserver_storage_list_fetched_objects_total", "counter", "group resource storage index", listMetrics, APIServer, Rules},
		{"apiserver_admission_webhook_admission_duration_seconds", "histogram", "name type operation rejected", admissionMetrics, APIServer, Rules},
		{"apiserver_admission_webhook_fail_open_count", "counter", "name type", admissionMetrics, APIServer, Rules},
		{"apiserver_admission_webhook_rejection_count", "counter", "name type operation error_type rejection_code", admissionMetrics, APIServer, Rules},
		{"apiserver_admission_step_admission_duration_seconds", "histogram", "type operation rejected", admissionMetrics, APIServer, Dashboards},
		{"apiserver_flowcontrol_current_executing_seats", "gauge", "priority_level flow_schema", flowMetrics, APIServer, Dashboards},
		{"apiserver_flowcontrol_current_inqueue_requests", "gauge", "priority_level flow_schema", flowMetrics, APIServer, Dashboards},
		{"apiserver_flowcontrol_current_limit_seats", "gauge", "priority_level", flowMetrics, APIServer, Dashboards},
		{"apiserver_storage_list_returned_objects_total", "counter", "group resource storage", listMetrics, APIServer, Dashboards},

		// Of etcd.
		{"etcd_disk_*", "", "", "", Etcd, Diagnosis},
		{"etcd_server_*", "", "", "", Etcd, Diagnosis},
		{"etcd_network_*", "", "", "", Etcd, Diagnosis},
		{"etcd_mvcc_*", "", "", "", Etcd, Diagnosis},
		{"etcd_snap_*", "", "", "", Etcd, Diagnosis},
		{"etcd_debugging_server_alarms", "gauge", "server_id alarm_type", etcdServer + "etcdserver/apply/metrics.go", Etcd, Rules},
		{"etcd_cluster_version", "", "", "", Etcd, Diagnosis},
		{"etcd_debugging_mvcc_*", "", "", "", Etcd, Diagnosis},
		{"grpc_server_handled_total", "counter", "grpc_type grpc_service grpc_method grpc_code", "", Etcd, Rules},
		{"grpc_server_started_total", "", "", "", Etcd, Diagnosis},
		{"os_fd_used", "", "", "", Etcd, Diagnosis},
		{"os_fd_limit", "", "", "", Etcd, Diagnosis},
		{"etcd_disk_wal_fsync_duration_seconds", "histogram", "", etcdServer + "storage/wal/metrics.go", Etcd, Rules},
		{"etcd_disk_backend_commit_duration_seconds", "histogram", "", etcdServer + "storage/backend/metrics.go", Etcd, Rules},
		{"etcd_mvcc_db_total_size_in_bytes", "gauge", "", etcdServer + "storage/mvcc/metrics.go", Etcd, Rules},
		{"etcd_server_quota_backend_bytes", "gauge", "", etcdServer + "storage/metrics.go", Etcd, Rules},
		{"etcd_server_leader_changes_seen_total", "counter", "", etcdServer + "etcdserver/metrics.go", Etcd, Rules},
		{"etcd_server_has_leader", "gauge", "", etcdServer + "etcdserver/metrics.go", Etcd, Rules},
		{"etcd_network_peer_round_trip_time_seconds", "histogram", "To", etcdServer + "etcdserver/api/rafthttp/metrics.go", Etcd, Rules},
		{"etcd_debugging_mvcc_keys_total", "gauge", "", etcdServer + "storage/mvcc/metrics.go", Etcd, Dashboards},
		{"etcd_debugging_mvcc_pending_events_total", "gauge", "", etcdServer + "storage/mvcc/metrics.go", Etcd, Dashboards},
		{"etcd_debugging_mvcc_slow_watcher_total", "gauge", "", etcdServer + "storage/mvcc/metrics.go", Etcd, Dashboards},
		{"etcd_debugging_mvcc_watcher_total", "gauge", "", etcdServer + "storage/mvcc/metrics.go", Etcd, Dashboards},
		{"etcd_disk_wal_write_bytes_total", "gauge", "", etcdServer + "storage/wal/metrics.go", Etcd, Dashboards},
		{"etcd_mvcc_db_total_size_in_use_in_bytes", "gauge", "", etcdServer + "storage/mvcc/metrics.go", Etcd, Dashboards},
		{"etcd_mvcc_delete_total", "counter", "", etcdServer + "storage/mvcc/metrics.go", Etcd, Dashboards},
		{"etcd_mvcc_put_total", "counter", "", etcdServer + "storage/mvcc/metrics.go", Etcd, Dashboards},
		{"etcd_mvcc_range_total", "counter", "", etcdServer + "storage/mvcc/metrics.go", Etcd, Dashboards},
		{"etcd_mvcc_txn_total", "counter", "", etcdServer + "storage/mvcc/metrics.go", Etcd, Dashboards},
		{"etcd_network_client_grpc_received_bytes_total", "counter", "", etcdServer + "etcdserver/api/v3rpc/metrics.go", Etcd, Dashboards},
		{"etcd_network_client_grpc_sent_bytes_total", "counter", "", etcdServer + "etcdserver/api/v3rpc/metrics.go", Etcd, Dashboards},
		{"etcd_network_peer_sent_failures_total", "counter", "To", etcdServer + "etcdserver/api/rafthttp/metrics.go", Etcd, Dashboards},
		{"etcd_server_apply_duration_seconds", "histogram", "version op success", etcdServer + "etcdserver/txn/metrics.go", Etcd, Dashboards},
		{"etcd_server_heartbeat_send_failures_total", "counter", "", etcdServer + "etcdserver/metrics.go", Etcd, Dashboards},
		{"etcd_server_is_leader", "gauge", "", etcdServer + "etcdserver/metrics.go", Etcd, Dashboards},
		{"etcd_server_proposals_committed_total", "gauge", "", etcdServer + "etcdserver/metrics.go", Etcd, Dashboards},
		{"etcd_server_proposals_failed_total", "counter", "", etcdServer + "etcdserver/metrics.go", Etcd, Dashboards},
		{"etcd_server_proposals_pending", "gauge", "", etcdServer + "etcdserver/metrics.go", Etcd, Dashboards},
		{"etcd_server_request_duration_seconds", "histogram", "type success", etcdServer + "etcdserver/metrics.go", Etcd, Dashboards},

		// Of schedulers.
		{"scheduler_*", "", "", "", Scheduler, Diagnosis},
		{"scheduler_scheduling_attempt_duration_seconds", "histogram", "result profile", schedulerMetrics, Scheduler, Rules},
		{"scheduler_pending_pods", "gauge", "queue", schedulerMetrics, Scheduler, Rules},
		{"scheduler_cache_size", "gauge", "type", schedulerMetrics, Scheduler, Dashboards},
		{"scheduler_framework_extension_point_duration_seconds", "histogram", "extension_point status profile", schedulerMetrics, Scheduler, Dashboards},
		{"scheduler_plugin_evaluation_total", "counter", "plugin extension_point profile", schedulerMetrics, Scheduler, Dashboards},
		{"scheduler_plugin_execution_duration_seconds", "histogram", "plugin extension_point status", schedulerMetrics, Scheduler, Dashboards},
		{"scheduler_pod_scheduling_sli_duration_seconds", "histogram", "attempts", schedulerMetrics, Scheduler, Dashboards},
		{"scheduler_preemption_attempts_total", "counter", "", schedulerMetrics, Scheduler, Dashboards},
		{"scheduler_preemption_victims", "histogram", "", schedulerMetrics, Scheduler, Dashboards},
		{"scheduler_queue_incoming_pods_total", "counter", "queue event", schedulerMetrics, Scheduler, Dashboards},
		{"scheduler_schedule_attempts_total", "counter", "result profile", schedulerMetrics, Scheduler, Dashboards},
		{"scheduler_scheduling_algorithm_duration_seconds", "histogram", "", schedulerMetrics, Scheduler, Dashboards},
		{"scheduler_unschedulable_pods", "gauge", "plugin profile", schedulerMetrics, Scheduler, Dashboards},

		// Of controller managers.
		{"node_collector_*", "", "", "", ControllerManager, Diagnosis},
		{"taint_eviction_controller_*", "", "", "", ControllerManager, Diagnosis},
		{"replicaset_controller_*", "", "", "", ControllerManager, Diagnosis},
		{"endpoint_slice_controller_*", "", "", "", ControllerManager, Diagnosis},
		{"job_controller_*", "", "", "", ControllerManager, Diagnosis},
		{"garbagecollector_controller_*", "", "", "", ControllerManager, Diagnosis},
		{"pod_gc_collector_*", "", "", "", ControllerManager, Diagnosis},
		{"running_managed_controllers", "", "", "", ControllerManager, Diagnosis},
		{"root_ca_cert_publisher_*", "", "", "", ControllerManager, Diagnosis},
		{"namespace_controller_*", "", "", "", ControllerManager, Diagnosis},
		{"cloudprovider_*", "", "", "", ControllerManager, Diagnosis},
		{"node_collector_unhealthy_nodes_in_zone", "gauge", "zone", nodeMetrics, ControllerManager, Rules},
		{"node_collector_zone_size", "gauge", "zone", nodeMetrics, ControllerManager, Rules},
		{"taint_eviction_controller_pod_deletions_total", "counter", "", taintMetrics, ControllerManager, Rules},
		{"endpoint_slice_controller_changes", "counter", "operation", sliceMetrics, ControllerManager, Dashboards},

		// Metrics of the generator; all of them are recorded.
		{"stormglass_scheduling_lag_seconds", "histogram", "", own + "generator/self.go", Generator, Rules},
		{"stormglass_request_lag_seconds", "histogram", "load", own + "load/request/metrics.go", Generator, Rules},
		{"stormglass_requests_unsent_total", "counter", "load verb resource", own + "load/request/metrics.go", Generator, Rules},
		{"stormglass_phase_active", "gauge", "phase", "", Generator, Dashboards},
		{"stormglass_fault_active", "gauge", "fault on", "", Generator, Dashboards},
		{"stormglass_fault_begin_timestamp_seconds", "gauge", "fault on", "", Generator, Dashboards},
		{"stormglass_node_heartbeat_seconds", "histogram", "", own + "node/ledger.go", Generator, Dashboards},
		{"stormglass_node_heartbeats_missed_total", "counter", "cause", "", Generator, Dashboards},
		{"stormglass_node_pods_running", "gauge", "", "", Generator, Dashboards},
		{"stormglass_node_requests_total", "counter", "verb resource code", own + "node/ledger.go", Generator, Dashboards},
		{"stormglass_node_watch_restarts_total", "counter", "kind", "", Generator, Dashboards},
		{"stormglass_node_watches", "gauge", "", "", Generator, Dashboards},
		{"stormglass_nodes_ready", "gauge", "", "", Generator, Dashboards},
		{"stormglass_pod_startup_seconds", "histogram", "", own + "workload/metrics.go", Generator, Dashboards},
		{"stormglass_request_seconds", "histogram", "load verb resource", own + "load/request/metrics.go", Generator, Dashboards},
		{"stormglass_requests_total", "counter", "code load verb resource", "", Generator, Dashboards},
		{"stormglass_watch_bytes_total", "counter", "load", "", Generator, Dashboards},
		{"stormglass_watch_delivered_total", "counter", "load", "", Generator, Dashboards},
		{"stormglass_watch_delivery_seconds", "histogram", "load", "", Generator, Dashboards},
		{"stormglass_watch_duplicated_total", "counter", "load", "", Generator, Dashboards},
		{"stormglass_watch_events_total", "counter", "load", "", Generator, Dashboards},
		{"stormglass_watch_lost_total", "counter", "load", "", Generator, Dashboards},
		{"stormglass_watch_reconnects_total", "counter", "load", "", Generator, Dashboards},
		{"stormglass_watch_relists_total", "counter", "load", "", Generator, Dashboards},
		{"stormglass_watch_reordered_total", "counter", "load", "", Generator, Dashboards},
		{"stormglass_watches_open", "gauge", "load", "", Generator, Dashboards},
		{"stormglass_workload_nodes_ready", "gauge", "", "", Generator, Dashboards},
		{"stormglass_workload_pods_pending", "gauge", "", "", Generator, Dashboards},
		{"stormglass_workload_pods_ready", "gauge", "", "", Generator, Dashboards},
		{"stormglass_workload_pods_terminating", "gauge", "", "", Generator, Dashboards},
		{"stormglass_workload_pods_unscheduled", "gauge", "", "", Generator, Dashboards},
		{"stormglass_workload_pods_wanted", "gauge", "", "", Generator, Dashboards},
		{"stormglass_workload_rollout_hop_seconds", "gauge", "deployment hop piece", "", Generator, Dashboards},

		// Made where scrapes and rules are evaluated; nothing exposes them.
		{"up", "gauge", "", "", Recorder, Rules},
		{"ALERTS", "gauge", "alertname alertstate", "", Recorder, Dashboards},
		{"scrape_duration_seconds", "gauge", "", "", Recorder, Dashboards},
	}
}
