package workload

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
	batchv1 "k8s.io/api/batch/v1"
	cloudprovider "k8s.io/cloud-provider/api"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"
)

// object holds the fields of an API object that the tracker needs. decode reads only these fields from the protobuf
// message, because decoding a whole pod takes six times the CPU and 12 KB of garbage (BenchmarkDecodePod).
type object struct {
	kind kind

	name, uid, resourceVersion string
	generation                 int64
	deleting                   bool // whether the object has a deletionTimestamp
	deployment, revision       string
	job                        string // for a Pod: the name of its Job

	ready     bool   // for a Pod or Node: condition Ready is True; a Node must also be initialized by its cloud, if any
	ended     bool   // for a Pod: whether the phase is Failed or Succeeded
	succeeded bool   // for a Pod: whether the phase is Succeeded
	nodeName  string // for a Pod: the name of its node

	endpoints []string // for an EndpointSlice: UIDs of the pods that are ready endpoints

	specReplicas int64 // spec.replicas of a Deployment, ReplicaSet or StatefulSet; completions of a Job
	// These fields are the status of a Deployment, StatefulSet or DaemonSet. A DaemonSet has no replicas.
	observed, replicas, updated, available int64

	// successes is the number of a Job's pods that have succeeded. complete and failed report how the Job has ended.
	successes        int64
	complete, failed bool

	// message and code are the fields of a Status, the error that ends a watch.
	message string
	code    int64
}

type kind int

const (
	podKind kind = iota
	nodeKind
	deploymentKind
	replicaSetKind
	sliceKind
	statusKind
	namespaceKind // namespaces that loads delete; the tracker watches this and the following kinds only if needed
	statefulSetKind
	daemonSetKind
	jobKind
	cronJobKind
)

func (k kind) String() string {
	return [...]string{"pods", "nodes", "deployments", "replicasets", "endpointslices", "status", "namespaces", "statefulsets", "daemonsets", "jobs", "cronjobs"}[k]
}

// root returns the API path of the kind's group.
func (k kind) root() string {
	switch k {
	case podKind, nodeKind, namespaceKind:
		return "/api/v1"
	case sliceKind:
		return "/apis/discovery.k8s.io/v1"
	case jobKind, cronJobKind:
		return "/apis/batch/v1"
	}
	return "/apis/apps/v1"
}

// These are field numbers of k8s.io/api/*/generated.proto and apimachinery's meta/v1.
const (
	podSpecNodeName      = 10
	podStatusPhase       = 1
	podStatusConditions  = 2
	nodeStatusConditions = 4
	nodeSpecTaints       = 5
	taintKey             = 1

	specReplicas              = 1 // in a Deployment, a ReplicaSet and a StatefulSet
	replicaSetTemplate        = 3
	deploymentStatusObserved  = 1
	deploymentStatusReplicas  = 2
	deploymentStatusUpdated   = 3
	deploymentStatusAvailable = 4

	statefulSetStatusUpdated   = 5 // fields with lower numbers have the same numbers as in a Deployment
	statefulSetStatusAvailable = 11

	daemonSetStatusObserved  = 5
	daemonSetStatusUpdated   = 6
	daemonSetStatusAvailable = 7

	jobSpecCompletions  = 2
	jobStatusConditions = 1
	jobStatusSucceeded  = 5
	jobConditionType    = 1
	jobConditionStatus  = 2

	sliceEndpoints     = 2
	endpointConditions = 2
	endpointTarget     = 4
	endpointReady      = 1
	referenceUID       = 4
	statusMessage      = 3
	statusCode         = 6
)

func decode(k kind, msg []byte) (object, error) {
	o := object{kind: k}
	if k == statusKind {
		err := protobuf.Fields(msg, func(num protowire.Number, b []byte, v uint64) error {
			switch num {
			case statusMessage:
				o.message = string(b)
			case statusCode:
				o.code = int64(v)
			}
			return nil
		})
		return o, err
	}
	m, err := protobuf.ReadObject(msg, o.mark)
	if err != nil {
		return o, err
	}
	o.name, o.uid, o.resourceVersion = string(m.Name), string(m.UID), string(m.ResourceVersion)
	o.generation, o.deleting = m.Generation, m.Deleting
	switch k {
	case podKind:
		err = o.pod(m)
	case nodeKind:
		if err = o.condition(m.Status, nodeStatusConditions); err == nil && o.ready {
			o.ready, err = initialized(m.Spec)
		}
	case deploymentKind:
		err = o.status(m, deploymentStatusObserved, deploymentStatusUpdated, deploymentStatusAvailable)
	case statefulSetKind:
		err = o.status(m, deploymentStatusObserved, statefulSetStatusUpdated, statefulSetStatusAvailable)
	case daemonSetKind:
		err = o.status(m, daemonSetStatusObserved, daemonSetStatusUpdated, daemonSetStatusAvailable)
	case jobKind:
		err = o.jobStatus(m)
	case replicaSetKind:
		err = o.replicaSet(m.Spec)
	case sliceKind:
		err = protobuf.Fields(msg, func(num protowire.Number, b []byte, _ uint64) error {
			if num != sliceEndpoints {
				return nil
			}
			return o.endpoint(b)
		})
	}
	return o, err
}

// mark stores the value of a label or annotation that the tracker needs, and ignores others.
func (o *object) mark(key, value []byte) {
	switch string(key) {
	case DeploymentLabel:
		o.deployment = string(value)
	case RevisionAnnotation:
		o.revision = string(value)
	case batchv1.JobNameLabel:
		o.job = string(value)
	}
}

func (o *object) pod(m protobuf.Object) error {
	name, err := protobuf.Field(m.Spec, podSpecNodeName)
	if err != nil {
		return err
	}
	phase, err := protobuf.Field(m.Status, podStatusPhase)
	if err != nil {
		return err
	}
	o.nodeName, o.succeeded = string(name), string(phase) == "Succeeded"
	o.ended = o.succeeded || string(phase) == "Failed"
	return o.condition(m.Status, podStatusConditions)
}

func (o *object) condition(status []byte, conditions protowire.Number) error {
	ready, err := protobuf.Ready(status, conditions)
	o.ready = string(ready) == "True"
	return err
}

// initialized reports whether the cloud-controller-manager has removed its taint from a Node.
func initialized(nodeSpec []byte) (bool, error) {
	is := true
	err := protobuf.Fields(nodeSpec, func(num protowire.Number, taint []byte, _ uint64) error {
		if num != nodeSpecTaints {
			return nil
		}
		key, err := protobuf.Field(taint, taintKey)
		is = is && string(key) != cloudprovider.TaintExternalCloudProvider
		return err
	})
	return is, err
}

// status decodes the status of a Deployment, StatefulSet or DaemonSet. observed, updated and available are the protobuf
// numbers of these fields, which depend on the kind.
func (o *object) status(m protobuf.Object, observed, updated, available protowire.Number) error {
	o.specReplicas = 1 // the API's default; the server always sends the value
	return errors.Join(
		protobuf.Ints(m.Spec, map[protowire.Number]*int64{specReplicas: &o.specReplicas}),
		protobuf.Ints(m.Status, map[protowire.Number]*int64{
			observed: &o.observed, deploymentStatusReplicas: &o.replicas, updated: &o.updated, available: &o.available,
		}),
	)
}

func (o *object) jobStatus(m protobuf.Object) error {
	if err := protobuf.Ints(m.Spec, map[protowire.Number]*int64{jobSpecCompletions: &o.specReplicas}); err != nil {
		return err
	}
	return protobuf.Fields(m.Status, func(num protowire.Number, b []byte, v uint64) error {
		switch num {
		case jobStatusSucceeded:
			o.successes = int64(v)
		case jobStatusConditions:
			return o.jobCondition(b)
		}
		return nil
	})
}

func (o *object) jobCondition(msg []byte) error {
	status, err := protobuf.Field(msg, jobConditionStatus)
	if err != nil || string(status) != "True" {
		return err
	}
	condition, err := protobuf.Field(msg, jobConditionType)
	switch batchv1.JobConditionType(condition) {
	case batchv1.JobComplete:
		o.complete = true
	case batchv1.JobFailed, batchv1.JobFailureTarget:
		o.failed = true
	}
	return err
}

// replicaSet reads the revision from the pod template of a ReplicaSet. The ReplicaSet's own annotations do not contain it,
// because they are copies of the Deployment's annotations.
func (o *object) replicaSet(spec []byte) error {
	if err := protobuf.Ints(spec, map[protowire.Number]*int64{specReplicas: &o.specReplicas}); err != nil {
		return err
	}
	template, err := protobuf.Field(spec, replicaSetTemplate)
	if err != nil {
		return err
	}
	_, err = protobuf.ReadObject(template, func(key, value []byte) {
		if string(key) == RevisionAnnotation {
			o.revision = string(value)
		}
	})
	return err
}

// endpoint adds the pod of an EndpointSlice's endpoint to o.endpoints, if the endpoint is ready. The API defines that
// an endpoint without the field `ready` is ready.
func (o *object) endpoint(msg []byte) error {
	ready := true
	var target []byte
	err := protobuf.Fields(msg, func(num protowire.Number, b []byte, _ uint64) error {
		switch num {
		case endpointConditions:
			return protobuf.Fields(b, func(num protowire.Number, _ []byte, v uint64) error {
				if num == endpointReady {
					ready = v != 0
				}
				return nil
			})
		case endpointTarget:
			target = b
		}
		return nil
	})
	if err != nil || !ready {
		return err
	}
	uid, err := protobuf.Field(target, referenceUID)
	if len(uid) > 0 {
		o.endpoints = append(o.endpoints, string(uid))
	}
	return err
}
