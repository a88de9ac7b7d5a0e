// Package node simulates kubelets, thousands in one process. Each sends the API
// server the requests of a real kubelet and does nothing else: no container runs.
//
// The requests of a kubelet 1.37, and those sent here with fidelity "kubelet"
// (sources: pkg/kubelet, pkg/volume/csi, component-helpers'
// lease controller, client-go's reflector):
//
//	a real kubelet                                  here
//	----------------------------------------------  -------------------------------------------
//	identity system:node:NAME, one HTTP/2            the same; certificates are signed by the
//	connection, protobuf                             client CA or through the CSR API
//	POST a CertificateSigningRequest after 70 to     the same, with the administrator's identity; new
//	90% of its certificate's life; new connection    connection at the next request, and watches again
//	POST nodes (not Ready), PATCH nodes/status       the same
//	DELETE, GET, POST its Lease; GET its Node        the same; it does not wait for the GETs
//	GET, POST its CSINode                            the same
//	watch its Node, its pods, services (no           the same six, as WatchLists; list and watch
//	headless ones), csidrivers, runtimeclasses,      where a server has no WatchList
//	its podcertificaterequests
//	watch each ConfigMap and Secret its pods         the same, by name, while a pod refers to it
//	refer to (kube-root-ca.crt of each namespace)
//	PUT its Lease every 10.0 to 10.4 s; GET only     the same, every 10 s
//	on a conflict
//	PATCH nodes/status every 5 min, and within       the same
//	10 s of a change
//	POST serviceaccounts/token for each token a      the same
//	pod mounts, again after 80% of its life
//	GET pod, PATCH pods/status when the pod and its  the same
//	sandbox start, after each init container, when
//	probes succeed, and when the containers run
//	GET pod, PATCH pods/status when it sees the      the same
//	deletion, and when the containers have stopped;
//	then GET, DELETE with gracePeriodSeconds 0
//	GET, PATCH when containers end by themselves,    the same
//	restart, back off, or fail a probe
//	POST events: (Pulling,) Pulled, Created,         the same; several Events in parallel
//	Started, Killing for each container
//	POST and PATCH events of its Node                the same, with the run's labels
//	DELETE its ResourceSlices, GET its Node and      the same; it ignores the responses
//	CSINode when it starts
//	from a device driver: GET its Node, POST a       the same, over the kubelet's connection
//	ResourceSlice, watch its own slices
//	GET each ResourceClaim of a pod before its       the same, and again after 10 to 15 s where it
//	sandbox, and its driver once more                is not allocated and reserved for the pod
//	GET persistentvolumes, claims, attachments       GET each claim once, and again until it is bound;
//	                                                 no volume is attached
//	(labels of its Node are watched)                 GET its Node, if its labels do not match a pod
//	GET serviceaccounts for credential providers,    none
//	watch clustertrustbundles, when in use
//
// `make calibrate-node` compares the numbers of requests of a real and a simulated kubelet, by verb. The results are in
// loadgen/lab/records/calibration.md.
//
// With spec.kubeProxy, each node also sends the requests of a kube-proxy (cmd/kube-proxy/app, pkg/proxy):
//
//	identity system:kube-proxy, a connection         the same, signed by the same CA, or through the
//	                                                 CSR API (kubernetes.io/kube-apiserver-client)
//	watch its Node, services (with a cluster IP,     the same four
//	not for another proxy), endpointslices (not
//	headless), servicecidrs
//	POST one event of its Node at its start          the same
//
// Fidelity "lean" leaves out the requests that change nothing: the GET before each PATCH, the reports on the sandbox,
// probes and init containers, and the Events about Nodes. Without spec.events it also leaves out the Events about pods.
// A pod with one container costs 5 requests instead of 17, or 9 with spec.events. With fidelity "shared" there are 2
// watches for all nodes, the same writes per node as with "lean", and 4 requests per pod. Each ResourceClaim costs one
// more GET, or two with fidelity "kubelet".
//
// Containers start after spec.podStart and after the node has pulled their images (spec.imagePull). A node pulls each
// image once, and one image at a time. The seed determines the start time of each pod and the pull time of each image
// on each node. Containers keep running, and stop immediately when their pod is deleted. Probes succeed, and readiness
// gates are honoured. If a pod has a PodLife (spec.podLives, docs/reference/pod-lives.md), a lifecycle ends and
// restarts its containers, fails its probes and image pulls, and evicts it. Without a PodLife, a pod with restartPolicy
// Never or OnFailure completes after 10 s. A pod that is deleted before its containers ran ends with phase Failed, its
// containers with reason ContainerStatusUnknown. Ephemeral containers run until their pod ends.
//
// A node rejects a pod that does not fit, does not tolerate the node's NoExecute taints or is for another operating
// system. Like a real kubelet, it ignores extended resources that its Node lacks. Unlike a real kubelet, it also
// ignores missing hugepages, does not check supplementalGroupsPolicy, and evicts no pods for a critical pod. A pod
// waits for the ConfigMaps, Secrets and claims that its volumes and environment variables use, unless its node is
// restricted (Config.Restricted) or has fidelity "shared". Nodes do not check the keys in ConfigMaps and Secrets.
//
// With fidelity "shared", one watch of pods and one of nodes serve all nodes, over a few connections with one identity.
// Real nodes would put a far higher watch load on the API server.
//
// The fault NodeFailure simulates the failure of a machine: the node resets its connection, abandons its requests and
// sends nothing more. NodeShutdown simulates an orderly shutdown, and SlowKubelet a slow kubelet. After NodeRecovery a
// node behaves like a restarted kubelet: it registers again, reports Ready, and reads its pods. Their containers are
// still running.
//
// loadgen/lab/records/performance.md compares the cost of nodes of each fidelity with the cost of KWOK's nodes.
package node
