package scrape

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/metricnames"
)

// jobLoadgen is the value of the labels job and instance in the generator's own metrics.
const jobLoadgen = "loadgen"

// Jobs returns the job names of all components and of the generator.
func Jobs() []string { return append(control.Kinds(), jobLoadgen) }

// keepList returns the names of the metric families that the recorder keeps for a job. A name that ends in * is a
// prefix. Each job has its own list: all components are in one binary, so the /metrics of one component may include
// families of another.
func keepList(job string) []string {
	const process, kube = metricnames.Process, metricnames.Kube
	switch job {
	case control.KindEtcd:
		return metricnames.Recorded(process, metricnames.Etcd)
	case control.KindAPIServer:
		return metricnames.Recorded(process, kube, metricnames.APIServer)
	case control.KindScheduler:
		return metricnames.Recorded(process, kube, metricnames.Scheduler)
	case control.KindControllerManager:
		return metricnames.Recorded(process, kube, metricnames.ControllerManager)
	case control.KindMetricsServer:
		return metricnames.Recorded(process, kube, metricnames.MetricsServer)
	case control.KindCloudControllerManager:
		return metricnames.Recorded(process, kube, metricnames.CloudControllers)
	case jobLoadgen:
		return []string{"*"}
	}
	if k := control.KindOf(job); k.Name != "" && k.Stage == control.StageServices {
		return metricnames.Recorded(process, metricnames.Service)
	}
	// The user chose the name of this job, so the target may be any component.
	return metricnames.Recorded(process, kube, metricnames.APIServer, metricnames.Etcd, metricnames.Scheduler, metricnames.ControllerManager)
}

// keeper decides which metric families of one job the recorder keeps.
type keeper struct {
	exact    map[string]bool
	prefixes []string
	drop     map[string]bool
}

// newKeeper returns a keeper for a job. extra lists families or series to keep in addition to keepList. drop lists
// families to drop.
func newKeeper(job string, extra, drop []string) *keeper {
	k := &keeper{exact: map[string]bool{}, drop: map[string]bool{}}
	for _, name := range append(keepList(job), extra...) {
		if prefix, ok := strings.CutSuffix(name, "*"); ok {
			k.prefixes = append(k.prefixes, prefix)
			continue
		}
		k.exact[name] = true
	}
	for _, name := range drop {
		k.drop[name] = true
	}
	return k
}

// seriesSuffixes are suffixes that follow the name of the family in the name of a series.
var seriesSuffixes = []string{"_bucket", "_sum", "_count"}

func (k *keeper) keep(family string) bool {
	if k.drop[family] {
		return false
	}
	return k.exact[family] || slices.ContainsFunc(k.prefixes, func(p string) bool { return strings.HasPrefix(family, p) }) ||
		slices.ContainsFunc(seriesSuffixes, func(s string) bool { return k.exact[family+s] })
}

// Names returns a regular expression for the names of a job's recorded series. The recorder does not keep a matching
// series if dropped returns true for its name. extra and drop have the meaning of Options.Extra and Options.Drop.
func Names(job string, extra, drop []string) (pattern string, dropped func(series string) bool) {
	k := newKeeper(job, extra, drop)
	var exact, prefixes []string
	for _, name := range slices.Sorted(maps.Keys(k.exact)) {
		exact = append(exact, regexp.QuoteMeta(name))
	}
	for _, p := range k.prefixes {
		prefixes = append(prefixes, regexp.QuoteMeta(p)+".*")
	}
	parts := append(prefixes, "(?:"+strings.Join(exact, "|")+")(?:"+strings.Join(seriesSuffixes, "|")+")?")
	return strings.Join(parts, "|"), func(series string) bool {
		return k.drop[series] || slices.ContainsFunc(seriesSuffixes, func(s string) bool {
			family, ok := strings.CutSuffix(series, s)
			return ok && k.drop[family]
		})
	}
}

// filterFamilies appends the lines of kept families in text to dst, and counts all series in text. It only splits lines
// and compares names, because it drops most of an API server's metrics, and parsing them would be slow.
func filterFamilies(dst, text []byte, keep func(family string) bool) (kept []byte, series int) {
	var family []byte // metric family of the last TYPE or HELP line
	keeping := false
	for len(text) > 0 {
		line := text
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			line = text[:i+1]
		}
		text = text[len(line):]
		if line[0] != '#' {
			if len(bytes.TrimSpace(line)) == 0 {
				continue
			}
			series++
			if !belongs(line, family) { // a series without a TYPE line
				family = seriesName(line)
				keeping = keep(string(family))
			}
			if keeping {
				dst = append(dst, line...)
			}
			continue
		}
		name, isType := metadataName(line)
		if name == nil {
			continue
		}
		if !bytes.Equal(name, family) {
			family, keeping = name, keep(string(name))
		}
		if isType && keeping {
			dst = append(dst, line...)
		}
	}
	return dst, series
}

// metadataName returns the metric family in a "# TYPE" or "# HELP" line. For other lines it returns nil.
func metadataName(line []byte) (name []byte, isType bool) {
	rest, isType := bytes.CutPrefix(line, []byte("# TYPE "))
	if !isType {
		var isHelp bool
		if rest, isHelp = bytes.CutPrefix(line, []byte("# HELP ")); !isHelp {
			return nil, false
		}
	}
	return rest[:nameEnd(rest)], isType
}

func seriesName(line []byte) []byte { return line[:nameEnd(line)] }

func nameEnd(b []byte) int {
	if i := bytes.IndexAny(b, "{ \t\n"); i >= 0 {
		return i
	}
	return len(b)
}

func belongs(line, family []byte) bool {
	if len(family) == 0 || !bytes.HasPrefix(line, family) {
		return false
	}
	rest := seriesName(line[len(family):])
	return len(rest) == 0 || slices.ContainsFunc(seriesSuffixes, func(s string) bool { return string(rest) == s })
}
