package object

import (
	"strconv"
	"strings"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// variant describes the options of an operation that are not defaults, such as "rv=0 limit=500 table". It distinguishes
// operations with the same verb and resource in the results.
func variant(x scenario.Operation) string {
	var words []string
	say := func(holds bool, word string) {
		if holds {
			words = append(words, word)
		}
	}
	say(x.Scope == "cluster", "cluster")
	say(x.ResourceVersion != "", "rv="+x.ResourceVersion)
	say(x.Limit > 0, "limit="+strconv.Itoa(x.Limit))
	say(x.AllPages, "allPages")
	say(x.LabelSelector != "", "labels="+x.LabelSelector)
	say(x.FieldSelector != "", "fields="+x.FieldSelector)
	say(x.Form != "" && x.Form != "object", x.Form)
	say(x.Encoding != "" && x.Encoding != "json", x.Encoding)
	say(x.PatchType != "" && x.PatchType != "merge", x.PatchType)
	return strings.Join(words, " ")
}
