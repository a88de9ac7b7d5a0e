package workload

import "github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"

type page struct {
	objects                    []object
	resourceVersion, continues string
}

func decodeList(k kind, data []byte) (page, error) {
	var p page
	msg, err := protobuf.Unwrap(data)
	if err != nil {
		return p, err
	}
	meta, err := protobuf.List(msg, func(item []byte) error {
		o, err := decode(k, item)
		p.objects = append(p.objects, o)
		return err
	})
	p.resourceVersion, p.continues = meta.ResourceVersion, meta.Continue
	return p, err
}

func decodeEvent(k kind, frame []byte) (eventType string, o object, err error) {
	eventType, msg, err := protobuf.Event(frame)
	if err != nil {
		return "", object{}, err
	}
	if eventType == "ERROR" {
		k = statusKind
	}
	o, err = decode(k, msg)
	return eventType, o, err
}
