package record

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Names is which series of a job are recorded, for who has them from elsewhere:
// a regular expression of their names, and what of those is dropped again. extra
// and drop are as in Options.
func Names(job string, extra, drop []string) (pattern string, dropped func(series string) bool) {
	k := newKeeper(job, extra, drop)
	var exact, prefixes []string
	for _, name := range slices.Sorted(maps.Keys(k.exact)) {
		exact = append(exact, regexp.QuoteMeta(name))
	}
	for _, p := range k.prefixes {
		prefixes = append(prefixes, regexp.QuoteMeta(p)+".*")
	}
	parts := append(prefixes, "(?:"+strings.Join(exact, "|")+")(?:"+strings.Join(seriesSuffixes[:], "|")+")?")
	return strings.Join(parts, "|"), func(series string) bool {
		if k.drop[series] {
			return true
		}
		for _, s := range seriesSuffixes {
			if family, ok := strings.CutSuffix(series, s); ok && k.drop[family] {
				return true
			}
		}
		return false
	}
}
