package workload

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"
)

// object holds what the tracker needs of an object. It is read off the wire: decoding whole pods costs six times
// the CPU and 12 KB of garbage each (BenchmarkDecodePod).
type object struct {
	kind kind

	name, uid, resourceVersion string
	generation                 int64
	deleting                   bool // has a deletionTimestamp
	deployment, revision       string

	ready    bool   // Pod, Node: condition Ready is True
	ended    bool   // Pod: Failed or Succeeded, never to run again
	nodeName string // Pod

	endpoints []string // EndpointSlice: UIDs of the pods that are ready in it

	specReplicas int64 // Deployment, ReplicaSet
	// Deployment.
	observed, replicas, updated, available int64

	// Status: the error that ends a watch.
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
)

func (k kind) String() string {
	return [...]string{"pods", "nodes", "deployments", "replicasets", "endpointslices", "status"}[k]
}

// Field numbers of k8s.io/api/*/generated.proto and apimachinery's meta/v1.
const (
	objectMetadata = 1
	objectSpec     = 2
	objectStatus   = 3

	metaName            = 1
	metaUID             = 5
	metaResourceVersion = 6
	metaGeneration      = 7
	metaDeletion        = 9
	metaLabels          = 11
	metaAnnotations     = 12

	podSpecNodeName      = 10
	podStatusPhase       = 1
	podStatusConditions  = 2
	nodeStatusConditions = 4
	conditionType        = 1
	conditionStatus      = 2

	deploymentSpecReplicas    = 1
	deploymentStatusObserved  = 1
	deploymentStatusReplicas  = 2
	deploymentStatusUpdated   = 3
	deploymentStatusAvailable = 4
	replicaSetTemplate        = 3
	templateMetadata          = 1
	sliceEndpoints            = 2
	endpointConditions        = 2
	endpointTarget            = 4
	endpointReady             = 1
	referenceUID              = 4
	statusMessage             = 3
	statusCode                = 6
	mapKey, mapValue          = 1, 2
)

// decode reads an object of kind k from its protobuf message.
func decode(k kind, msg []byte) (object, error) {
	o := object{kind: k}
	if k == deploymentKind {
		o.specReplicas = 1 // the API's default; the server writes it out
	}
	err := protobuf.Fields(msg, func(num protowire.Number, b []byte, v uint64) error {
		switch {
		case k == statusKind && num == statusMessage:
			o.message = string(b)
		case k == statusKind && num == statusCode:
			o.code = int64(v)
		case k == statusKind:
		case k == sliceKind && num == sliceEndpoints:
			return o.endpoint(b)
		case k == sliceKind && num != objectMetadata:
		case num == objectMetadata:
			return o.metadata(b)
		case num == objectSpec:
			return o.spec(b)
		case num == objectStatus:
			return o.status(b)
		}
		return nil
	})
	return o, err
}

func (o *object) metadata(msg []byte) error {
	return protobuf.Fields(msg, func(num protowire.Number, b []byte, v uint64) error {
		switch num {
		case metaName:
			o.name = string(b)
		case metaUID:
			o.uid = string(b)
		case metaResourceVersion:
			o.resourceVersion = string(b)
		case metaGeneration:
			o.generation = int64(v)
		case metaDeletion:
			o.deleting = true
		case metaLabels:
			return pair(b, DeploymentLabel, &o.deployment)
		case metaAnnotations:
			return pair(b, RevisionAnnotation, &o.revision)
		}
		return nil
	})
}

// pair reads one entry of a map and keeps the value of that key.
func pair(msg []byte, key string, into *string) error {
	match := false
	return protobuf.Fields(msg, func(num protowire.Number, b []byte, _ uint64) error {
		if num == mapKey {
			match = string(b) == key
		}
		if num == mapValue && match {
			*into = string(b)
		}
		return nil
	})
}

func (o *object) spec(msg []byte) error {
	return protobuf.Fields(msg, func(num protowire.Number, b []byte, v uint64) error {
		switch {
		case o.kind == podKind && num == podSpecNodeName:
			o.nodeName = string(b)
		case (o.kind == deploymentKind || o.kind == replicaSetKind) && num == deploymentSpecReplicas:
			o.specReplicas = int64(v)
		case o.kind == replicaSetKind && num == replicaSetTemplate:
			return o.template(b)
		}
		return nil
	})
}

func (o *object) status(msg []byte) error {
	return protobuf.Fields(msg, func(num protowire.Number, b []byte, v uint64) error {
		switch {
		case o.kind == podKind && num == podStatusPhase:
			o.ended = string(b) == "Failed" || string(b) == "Succeeded"
		case o.kind == podKind && num == podStatusConditions,
			o.kind == nodeKind && num == nodeStatusConditions:
			return o.condition(b)
		case o.kind != deploymentKind:
		case num == deploymentStatusObserved:
			o.observed = int64(v)
		case num == deploymentStatusReplicas:
			o.replicas = int64(v)
		case num == deploymentStatusUpdated:
			o.updated = int64(v)
		case num == deploymentStatusAvailable:
			o.available = int64(v)
		}
		return nil
	})
}

func (o *object) condition(msg []byte) error {
	isReady := false
	return protobuf.Fields(msg, func(num protowire.Number, b []byte, _ uint64) error {
		switch num {
		case conditionType:
			isReady = string(b) == "Ready"
		case conditionStatus:
			if isReady {
				o.ready = string(b) == "True"
			}
		}
		return nil
	})
}

// template takes a ReplicaSet's revision from its pods' template: its own annotations are the Deployment's.
func (o *object) template(msg []byte) error {
	return protobuf.Fields(msg, func(num protowire.Number, b []byte, _ uint64) error {
		if num != templateMetadata {
			return nil
		}
		return protobuf.Fields(b, func(num protowire.Number, b []byte, _ uint64) error {
			if num != metaAnnotations {
				return nil
			}
			return pair(b, RevisionAnnotation, &o.revision)
		})
	})
}

// endpoint keeps the pod of a ready endpoint. One that does not say is ready, by the API's definition.
func (o *object) endpoint(msg []byte) error {
	ready, uid := true, ""
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
			return protobuf.Fields(b, func(num protowire.Number, b []byte, _ uint64) error {
				if num == referenceUID {
					uid = string(b)
				}
				return nil
			})
		}
		return nil
	})
	if ready && uid != "" {
		o.endpoints = append(o.endpoints, uid)
	}
	return err
}
