package scenario

const watchesExample = "[{kind: watches, count: 100, rate: 50/s}]"

func watchesKind() loadKind {
	return loadKind{
		name: "watches", example: watchesExample, results: []LoadResult{WatchResults},
		watches: true, objects: 1, manifests: true,
		fields: func(l *Load) []field {
			return []field{
				{name: "count", set: l.Count != 0}, {name: "hold", set: l.Hold}, {name: "connect", set: l.Connect != ""},
				{name: "start", set: l.Start != ""}, {name: "slow", set: l.Slow != (SlowWatches{})},
			}
		},
		defaults: func(l *Load) {
			orDefault(&l.Connect, "shared")
			orDefault(&l.Start, "list")
			if l.Slow.Fraction > 0 {
				orDefault(&l.Slow.Window, 64<<10)
			}
		},
		validate: func(v *validator, path string, l *Load, open map[string]*Load) {
			v.watches(path, l)
			if open == nil {
				v.fail(path+".kind", "move the load into a phase, and set hold: true to keep the watches open", "a load of watches cannot run in the background")
			}
		},
	}
}

func (v *validator) watches(path string, l *Load) {
	v.between(path+".count", float64(l.Count), 1, maxWatches)
	v.oneOf(path+".connect", l.Connect, "shared", "each")
	v.oneOf(path+".start", l.Start, "list", "watchList")
	v.answer(path, l, &l.Operation)
	if l.Form == "table" {
		v.fail(path+".form", "write object or metadata", "watches of tables are not measured")
	}
	v.between(path+".slow.fraction", l.Slow.Fraction, 0, 1)
	if l.Slow.Fraction > 0 {
		v.between(path+".slow.window", float64(l.Slow.Window), 1, 1<<30)
	} else if l.Slow.Fraction == 0 && l.Slow != (SlowWatches{}) {
		v.fail(path+".slow", "add fraction: 0.1", "slow has no effect without a fraction")
	}
}
