package record

import (
	"strings"

	"github.com/stormglass/stormglass/controlplane/control"
)

// jobLoadgen is the generator's own job and instance.
const jobLoadgen = "loadgen"

// keepList is the families that are recorded, by job. A name that ends in *
// is a prefix. Every job has its own list, as all components are one binary:
// a family that leaks into the /metrics of a component it does not belong to
// is not recorded there. What a gate's PromQL names is recorded besides
// (Options.Extra); Options.Drop has the last word.
//
// A list is what the official objectives, the gates, the dashboards and the
// diagnosis of the incidents read. Left out, by size: request body sizes,
// field validation, feature flags, most of the watch cache's histograms per resource.
func keepList(job string) []string {
	process := []string{
		"process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "process_max_fds",
		"process_start_time_seconds", "process_network_receive_bytes_total", "process_network_transmit_bytes_total",
		"go_goroutines", "go_threads", "go_gc_duration_seconds", "go_memstats_heap_inuse_bytes",
		"go_memstats_heap_alloc_bytes", "go_memstats_alloc_bytes_total", "go_memstats_next_gc_bytes",
		// How long goroutines wait for a CPU: tells a starved component from a busy one.
		"go_sched_latencies_seconds",
	}
	kube := []string{
		"kubernetes_build_info", "rest_client_requests_total", "rest_client_request_duration_seconds",
		"rest_client_rate_limiter_duration_seconds", "rest_client_request_retries_total",
		"workqueue_*", "leader_election_*", "informer_queued_items",
	}
	apiserver := []string{
		"apiserver_request_duration_seconds", "apiserver_request_sli_duration_seconds", "apiserver_request_total",
		"apiserver_request_terminations_total", "apiserver_request_aborts_total", "apiserver_request_filter_duration_seconds",
		"apiserver_current_inflight_requests", "apiserver_current_inqueue_requests", "apiserver_longrunning_requests",
		"apiserver_response_sizes", "apiserver_flowcontrol_*", "apiserver_tls_handshake_errors_total",
		// Watches and the cache they are served from.
		"apiserver_watch_events_total", "apiserver_watch_events_sizes", "apiserver_watch_events_dispatch_duration_seconds",
		"apiserver_watch_cache_events_dispatched_total", "apiserver_watch_cache_events_received_total",
		"apiserver_watch_cache_initializations_total",
		"apiserver_watch_cache_read_wait_seconds", // a part of LIST and GET in package breakdown
		"apiserver_watch_cache_consistent_read_total", "apiserver_terminated_watchers_total", "apiserver_init_events_total",
		"apiserver_cache_list_total", "apiserver_cache_list_fetched_objects_total", "apiserver_cache_list_returned_objects_total",
		"watch_cache_capacity",
		// Between the API server and etcd.
		"etcd_request_duration_seconds", "etcd_requests_total", "etcd_request_errors_total", "etcd_bookmark_total",
		"etcd_lease_object_counts", "apiserver_storage_objects", "apiserver_storage_size_bytes", "apiserver_resource_objects",
		"apiserver_resource_size_estimate_bytes", "apiserver_storage_list_*", "apiserver_storage_events_received_total",
		// Admission, authentication, authorization, audit, aggregation.
		"apiserver_admission_*", "authentication_attempts", "authentication_duration_seconds", "authorization_attempts_total",
		"authorization_duration_seconds", "apiserver_authorization_decisions_total", "apiserver_audit_event_total",
		"apiserver_audit_error_total", "apiserver_audit_requests_rejected_total", "aggregator_unavailable_apiservice*",
		"apiserver_client_certificate_expiration_seconds", "apiserver_envelope_encryption_*",
	}
	etcd := []string{
		"etcd_disk_*", "etcd_server_*", "etcd_network_*", "etcd_mvcc_*", "etcd_snap_*", "etcd_debugging_server_alarms", "etcd_cluster_version",
		"etcd_debugging_mvcc_*", "grpc_server_handled_total", "grpc_server_started_total", "os_fd_used", "os_fd_limit",
	}
	scheduler := []string{"scheduler_*"}
	controllers := []string{
		"node_collector_*", "taint_eviction_controller_*", "replicaset_controller_*", "endpoint_slice_controller_*",
		"job_controller_*", "garbagecollector_controller_*", "pod_gc_collector_*", "running_managed_controllers",
		"root_ca_cert_publisher_*", "namespace_controller_*", "cloudprovider_*",
	}
	switch job {
	case control.KindEtcd:
		return join(process, etcd)
	case control.KindAPIServer:
		return join(process, kube, apiserver)
	case control.KindScheduler:
		return join(process, kube, scheduler)
	case control.KindControllerManager:
		return join(process, kube, controllers)
	case jobLoadgen:
		return []string{"*"}
	}
	// A job of a user's own naming may be any of them.
	return join(process, kube, apiserver, etcd, scheduler, controllers)
}

func join(lists ...[]string) []string {
	var all []string
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// keeper decides which families of one job are recorded.
type keeper struct {
	exact    map[string]bool
	prefixes []string
	drop     map[string]bool
}

// newKeeper takes the names of families, or of their series, to keep besides
// the job's own list, and the names of families to drop.
func newKeeper(job string, extra, drop []string) *keeper {
	k := &keeper{exact: map[string]bool{}, drop: map[string]bool{}}
	for _, name := range append(keepList(job), extra...) {
		if prefix, ok := strings.CutSuffix(name, "*"); ok {
			k.prefixes = append(k.prefixes, prefix)
			continue
		}
		k.exact[name] = true
	}
	for _, name := range drop {
		k.drop[name] = true
	}
	return k
}

// seriesSuffixes are what a family's name has behind it in the names of its series.
var seriesSuffixes = [...]string{"_bucket", "_sum", "_count"}

func (k *keeper) keep(family string) bool {
	if k.drop[family] {
		return false
	}
	if k.exact[family] {
		return true
	}
	for _, p := range k.prefixes {
		if strings.HasPrefix(family, p) {
			return true
		}
	}
	for _, s := range seriesSuffixes {
		if k.exact[family+s] {
			return true
		}
	}
	return false
}
