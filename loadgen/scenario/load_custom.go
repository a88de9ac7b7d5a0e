package scenario

// customKind describes loads whose requests come from the Go program that runs the scenario.
func customKind() loadKind {
	return loadKind{
		name: "custom", example: "[{kind: custom, name: login, rate: 50/s}]", results: []LoadResult{RequestResults},
		fixed:    &refusal{"leave out verb, resource and similar fields", "the Go program that runs the scenario sends the requests of a custom load"},
		fields:   func(*Load) []field { return nil },
		validate: func(*validator, string, *Load, map[string]*Load) {},
	}
}
