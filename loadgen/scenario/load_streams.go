package scenario

var streamSubresources = map[string]string{"logs": "log", "exec": "exec", "attach": "attach", "portForward": "portforward"}

func streamsKind() loadKind {
	return loadKind{
		name: "streams", example: "[{kind: streams, stream: logs, rate: 5/s}]", results: []LoadResult{RequestResults},
		fixed: &refusal{"leave out verb, resource and similar fields", "a load of kind streams always connects to the run's own pods"},
		fields: func(l *Load) []field {
			return []field{{name: "stream", set: l.Stream != ""}, {name: "follow", set: l.Follow != 0}}
		},
		defaults: func(l *Load) { orDefault(&l.Stream, "logs") },
		validate: func(v *validator, path string, l *Load, _ map[string]*Load) {
			if !v.oneOf(path+".stream", l.Stream, "logs", "exec", "attach", "portForward") {
				return
			}
			switch {
			case l.Follow < 0 || l.Follow.D() >= l.Timeout.D():
				v.fail(path+".follow", "less than timeout, "+l.Timeout.String(), "%s is out of bounds", l.Follow)
			case l.Follow > 0 && (l.Stream == "exec" || l.Stream == "portForward"):
				v.fail(path+".follow", "only logs and attach have this field", "this field has no effect in %s", l.Stream)
			}
		},
	}
}

// PodSubresource returns the subresource of pods to which the load opens streams. For other loads it returns "".
func (l *Load) PodSubresource() string { return streamSubresources[l.Stream] }
