// Package node simulates kubelets: as many as one likes in one process, each
// doing at the API server what a real kubelet does there, and nothing anywhere
// else. No container runs; what is loaded is the control plane.
//
// What a kubelet 1.37 asks of an API server, and what is asked here with
// fidelity "kubelet" (sources: pkg/kubelet, component-helpers' lease
// controller, client-go's reflector):
//
//	a real kubelet                                  here
//	----------------------------------------------  -------------------------------------------
//	identity system:node:NAME, one HTTP/2            the same; signed by the plane's own client
//	connection, protobuf                             CA, or through the CSR API
//	POST nodes (not Ready), PATCH nodes/status       the same
//	DELETE, GET, POST its Lease; GET its Node        DELETE, POST
//	GET, POST its CSINode                            POST
//	watch its Node, its pods, services (no           the same six, as WatchLists; list and watch
//	headless ones), csidrivers, runtimeclasses,      where a server has no WatchList
//	its podcertificaterequests
//	watch each ConfigMap and Secret its pods         the same, by name, while a pod refers to it
//	refer to (kube-root-ca.crt of each namespace)
//	PUT its Lease every 10 s; GET only on a          the same
//	conflict
//	PATCH nodes/status every 5 min, and within       the same
//	10 s of a change
//	POST serviceaccounts/token for each token a      the same, once: a token is refreshed after
//	pod mounts                                       48 minutes, which is left out
//	GET pod, PATCH pods/status two or three times    one PATCH, to Ready; no GET: the watch has
//	until a pod is Ready                             brought the pod a moment ago
//	the same as its containers stop, then DELETE     one PATCH, one DELETE, both with the uid as
//	with gracePeriodSeconds 0                        precondition
//	POST and PATCH events: 3 to 5 for each pod       none
//	GET persistentvolumes, claims, attachments       none: volumes that need them are not
//	                                                 mounted, nor waited for
//	watch secrets of serviceaccount credentials,     none
//	clustertrustbundles, when in use
//	kube-proxy: services, endpointslices, nodes      none: not part of the kubelet
//
// Containers start when spec.podStart has passed, never fail, never end by
// themselves (a Job's pods run on), and stop at once when their pod is
// deleted, within whatever grace it has. Probes always succeed; readiness
// gates are honoured.
//
// With fidelity "shared" all nodes are served by one watch of pods and one of
// nodes, over a few connections of one identity; each node's writes are the
// same. It loads watches far less than real nodes would and is for counts
// where that is not the question.
//
// Failure of a node is that of a machine: its connection is reset, its
// requests are abandoned, and it stays silent. A node that recovers does what
// a restarted kubelet does: it registers again, reports Ready, and looks what
// became of its pods: containers that were running still run.
//
// Cost, measured on a bundled plane with 500 nodes and 5,000 pods: 66 KB of
// memory per idle node with its six watches, 4 ms of CPU per registration (a
// key, a certificate, a TLS handshake, six watches), 0.5 ms per pod taken to
// Ready and as much per pod removed, heartbeats included.
package node
