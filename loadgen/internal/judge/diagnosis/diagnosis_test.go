package diagnosis

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/result"
)

const step = 5 * time.Second

var begin = time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)

// moves is a signal of a component. Its value is `under` from scrape `from` to the scrape before `to`, and about `calm`
// at other times.
type moves struct {
	signal, component string
	calm, under       float64
	from, to          int // scrapes
}

// plane answers with signals of known values, by the PromQL of each.
type plane []moves

// answers is an API server with scraped metrics.
var answers = moves{"cpu", "kube-apiserver-0", 0.05, 0, 0, 0}

func (p plane) Range(_ context.Context, expr string, start, end time.Time, by time.Duration) (all []archive.Series, err error) {
	for _, m := range p {
		s := known.signal(m.signal)
		if s.query(2*step+time.Millisecond) != expr {
			continue
		}
		one := archive.Series{Labels: map[string]string{s.Component: m.component}}
		for t := start; !t.After(end); t = t.Add(by) {
			n := int(t.Sub(begin) / step)
			v := m.calm * (1 + 0.01*float64(n%3)) // a little noise
			if n >= m.from && n < m.to {
				v = m.under
			}
			one.Points = append(one.Points, archive.Point{T: t, V: v})
		}
		all = append(all, one)
	}
	return all, nil
}

// scraped is a plane with only some of its scrapes.
type scraped struct {
	plane
	only func(instance string, at time.Time) bool
}

func (s scraped) Range(ctx context.Context, expr string, start, end time.Time, by time.Duration) ([]archive.Series, error) {
	all, err := s.plane.Range(ctx, expr, start, end, by)
	for i, one := range all {
		all[i].Points = slices.DeleteFunc(one.Points, func(p archive.Point) bool { return !s.only(one.Labels["instance"], p.T) })
	}
	return slices.DeleteFunc(all, func(one archive.Series) bool { return len(one.Points) == 0 }), err
}

// joins keeps the processes with index 3 only from scrape 20 on.
func joins(instance string, at time.Time) bool {
	return !strings.HasSuffix(instance, "-3") || !at.Before(begin.Add(20*step))
}

// leaves keeps the processes with index 0 only up to scrape 15.
func leaves(instance string, at time.Time) bool {
	return !strings.HasSuffix(instance, "-0") || at.Before(begin.Add(15*step))
}

func diagnose(t *testing.T, p plane) result.Diagnosis {
	t.Helper()
	if !slices.ContainsFunc(p, func(m moves) bool { return m.signal == answers.signal && m.component == answers.component }) {
		p = append(p, answers)
	}
	d, err := Diagnose(context.Background(), p, Options{From: begin, To: begin.Add(60 * step), Step: step})
	if err != nil {
		t.Fatal(err)
	}
	return asWhole(d)
}

// asWhole treats a diagnosis as if all signals were recorded: a test only lists the signals that matter.
func asWhole(d result.Diagnosis) result.Diagnosis {
	if d.Answer == result.CannotTell && len(d.Doubts) == 1 && strings.HasSuffix(d.Doubts[0], "signals have no data") {
		d.Answer = result.Healthy
	}
	return d
}

func causesOf(d result.Diagnosis) string {
	var all []string
	for _, c := range d.Causes {
		all = append(all, fmt.Sprintf("%s of %s", c.Kind, strings.Join(c.Components, ",")))
	}
	return strings.Join(all, "; ")
}

func TestCauses(t *testing.T) {
	fsync := moves{"wal-fsync", "etcd-1", 0.0006, 0.026, 20, 30}
	commit := moves{"backend-commit", "etcd-1", 0.001, 0.05, 20, 30}
	etcdOwn := moves{"etcd-own", "etcd-1", 0.002, 0.06, 20, 31}
	writes := moves{"writes", "kube-apiserver-0", 0.01, 1.5, 20, 31}
	webhook := moves{"webhook", "review", 0.002, 0.3, 20, 30}
	busy := moves{"machine-others", "loadgen", 0.02, 0.6, 20, 30}
	tokens := moves{"authenticator", "kube-apiserver", 1, 0, 0, 0}
	for name, c := range map[string]struct {
		plane  plane
		answer string
		causes string
	}{
		"calm":                         {plane{{"wal-fsync", "etcd-0", 0.0006, 0, 0, 0}}, result.Healthy, ""},
		"log's disk, and what follows": {plane{fsync, etcdOwn, writes}, result.Diagnosed, "slow-wal-fsync of etcd-1"},
		"fsync of an etcd that waits for processors":        {plane{{"wal-fsync", "etcd-1", 0.002, 0.009, 20, 30}, {"run-wait", "etcd-1", 0.0001, 0.0002, 0, 60}, {"wal-fsync-fast", "etcd-1", 0.0002, 0.0008, 20, 30}, {"machine-others", "loadgen", 0.5, 0.5, 0, 60}, {"clients-slow", "loadgen", 0.02, 2, 20, 30}}, result.Diagnosed, "machine of loadgen"},
		"a slow disk of an etcd that waits for them":        {plane{{"wal-fsync", "etcd-1", 0.002, 0.009, 20, 30}, {"run-wait", "etcd-1", 0.0001, 0.0002, 0, 60}, {"wal-fsync-fast", "etcd-1", 0.0002, 0.0046, 20, 30}, {"machine-others", "loadgen", 0.5, 0.5, 0, 60}}, result.Diagnosed, "slow-wal-fsync of etcd-1"},
		"slow kubelets next to busy loops":                  {plane{{"heartbeats-late", "loadgen", 0, 1.5, 20, 30}, {"machine-others", "loadgen", 0.5, 0.5, 0, 60}}, result.Diagnosed, "nodes-slow of loadgen"},
		"late heartbeats of a late generator":               {plane{{"heartbeats-late", "loadgen", 0, 1.5, 20, 30}, {"generator-timers", "loadgen", 0.01, 0.6, 20, 30}, {"machine-others", "loadgen", 0.5, 0.5, 0, 60}}, result.Healthy, ""},
		"stopped again and again":                           {plane{{"stopped", "etcd-0", 0, 1, 20, 30}, {"writes", "kube-apiserver-0", 0.01, 1.5, 20, 31}}, result.Diagnosed, "paused of etcd-0"},
		"etcd's errors of an overload":                      {plane{{"more-requests", "widgets", 0, 420, 20, 30}, {"etcd-errors", "kube-apiserver-0", 0, 32, 24, 30}, {"writes", "kube-apiserver-0", 0.01, 1.5, 21, 31}}, result.Diagnosed, "more-requests of widgets"},
		"heartbeats that a webhook delays":                  {plane{{"webhook", "leases", 0.002, 5, 20, 30}, {"heartbeat", "loadgen", 0.01, 5, 20, 30}}, result.Diagnosed, "webhook-slow of leases"},
		"a defragmentation":                                 {plane{{"defrag", "etcd-1", 0, 2, 20, 30}, fsync, commit, writes}, result.Diagnosed, "defragmented of etcd-1"},
		"few huge objects":                                  {plane{{"read-bytes", "secrets", 1e5, 8e7, 20, 30}, {"reads", "kube-apiserver-0", 0.01, 1.5, 20, 31}}, result.Diagnosed, "heavy-lists of secrets"},
		"watches that begin again and again":                {plane{{"watch-ends", "kube-apiserver-0", 1, 60, 20, 30}, {"clients-slow", "loadgen", 0.02, 2, 20, 30}}, result.Diagnosed, "more-watches of kube-apiserver-0"},
		"a NoExecute taint":                                 {plane{{"taint-evictions", "kube-controller-manager", 0, 20, 20, 23}, {"unschedulable", "kube-scheduler", 0, 10, 22, 30}}, result.Diagnosed, "tainted of kube-controller-manager"},
		"a CPU limit":                                       {plane{{"processor-share", "kube-apiserver-0", 0.01, 1.4, 20, 31}, writes, {"run-wait", "kube-apiserver-0", 0.0001, 0.04, 20, 31}, {"etcd-link", "kube-apiserver-0", 0.001, 0.04, 20, 30}}, result.Diagnosed, "cpu-limit of kube-apiserver-0"},
		"large objects":                                     {plane{{"etcd-bytes", "etcd-1", 2e5, 3e7, 20, 30}, fsync, commit, writes}, result.Diagnosed, "large-writes of etcd-1"},
		"large objects without harm":                        {plane{{"etcd-bytes", "etcd-1", 2e5, 3e7, 20, 30}}, result.Healthy, ""},
		"a slow disk next to few more bytes":                {plane{{"etcd-bytes", "etcd-1", 2e5, 3e6, 20, 30}, fsync, commit, writes}, result.Diagnosed, "slow-disk of etcd-1"},
		"watches that are never closed":                     {plane{{"watches", "kube-apiserver-0", 300, 30000, 20, 60}, {"clients-slow", "loadgen", 0.02, 2, 30, 60}}, result.Diagnosed, "more-watches of kube-apiserver-0"},
		"pods that a quota refuses":                         {plane{{"pods-refused", "403", 0, 12, 20, 60}, {"workload-stalled", "web", 0, 40, 24, 60}}, result.Diagnosed, "pods-refused of 403"},
		"pods refused in ending namespaces":                 {plane{{"pods-refused", "403", 0, 12, 20, 30}}, result.Healthy, ""},
		"a workload that stalls for no known reason":        {plane{{"workload-stalled", "web", 0, 40, 24, 60}}, result.Unknown, ""},
		"pods that finalizers hold":                         {plane{{"pods-held", "loadgen", 0, 5, 20, 60}, {"namespaces-held", "kube-controller-manager", 0, 2, 26, 60}}, result.Diagnosed, "pods-held of loadgen"},
		"both files' disk":                                  {plane{fsync, commit, etcdOwn}, result.Diagnosed, "slow-disk of etcd-1"},
		"commit of another member stays calm":               {plane{fsync, {"backend-commit", "etcd-0", 0.001, 0.05, 20, 30}}, result.Diagnosed, "slow-wal-fsync of etcd-1"},
		"members one after another are one cause":           {plane{fsync, {"wal-fsync", "etcd-0", 0.0006, 0.03, 22, 31}}, result.Diagnosed, "slow-wal-fsync of etcd-0,etcd-1"},
		"members called by their addresses":                 {plane{{"wal-fsync", "etcd-a.example:2379", 0.0006, 0.026, 20, 30}, {"wal-fsync", "etcd-b.example:2379", 0.0006, 0.03, 22, 31}}, result.Diagnosed, "slow-wal-fsync of etcd-a.example:2379,etcd-b.example:2379"},
		"killed on a node called master-1":                  {plane{{"started", "etcd-master-1", 0, 1, 20, 22}, {"server-errors", "kube-apiserver-master-1", 0, 9, 20, 23}, {"peers-lost", "etcd-master-2", 0, 2, 20, 23}, {"started", "kube-scheduler-master-1", 0, 1, 23, 25}}, result.Diagnosed, "killed of etcd-master-1"},
		"others wait for a member's slow disk":              {plane{fsync, {"wal-fsync", "etcd-0", 0.0006, 0.0046, 20, 30}, {"backend-commit", "etcd-0", 0.001, 0.006, 20, 30}}, result.Diagnosed, "slow-wal-fsync of etcd-1"},
		"twice is two causes":                               {plane{fsync, {"wal-fsync", "etcd-0", 0.0006, 0.03, 50, 60}}, result.Diagnosed, "slow-wal-fsync of etcd-1; slow-wal-fsync of etcd-0"},
		"one scrape is not enough":                          {plane{{"wal-fsync", "etcd-1", 0.0006, 0.026, 20, 21}}, result.Healthy, ""},
		"too small to matter":                               {plane{{"wal-fsync", "etcd-1", 0.0006, 0.0012, 20, 30}}, result.Healthy, ""},
		"two at once":                                       {plane{fsync, webhook}, result.Diagnosed, "slow-wal-fsync of etcd-1; webhook-slow of review"},
		"a link between members":                            {plane{etcdOwn, {"peer-round-trip", "etcd-0", 0.001, 0, 0, 0}, {"wal-fsync", "etcd-0", 0.0006, 0, 0, 0}}, result.Diagnosed, "peer-link of etcd-1"},
		"commits a little slower, and a slow link":          {plane{etcdOwn, {"backend-commit", "etcd-1", 0.001, 0.006, 20, 30}, {"peer-round-trip", "etcd-0", 0.001, 0, 0, 0}, {"wal-fsync", "etcd-0", 0.0006, 0, 0, 0}}, result.Diagnosed, "peer-link of etcd-1"},
		"links of two members, seen a scrape apart":         {plane{etcdOwn, {"etcd-own", "etcd-0", 0.002, 0.06, 22, 31}, {"peer-round-trip", "etcd-0", 0.001, 0, 0, 0}, {"wal-fsync", "etcd-0", 0.0006, 0, 0, 0}}, result.Diagnosed, "peer-link of etcd-0,etcd-1"},
		"a link whose probes have no data":                  {plane{etcdOwn, {"peer-round-trip", "etcd-0", math.NaN(), math.NaN(), 0, 0}, {"wal-fsync", "etcd-0", 0.0006, 0, 0, 0}}, result.Healthy, ""},
		"too little for a link between members":             {plane{{"etcd-own", "etcd-1", 0.00176, 0.009, 20, 30}, {"peer-round-trip", "etcd-0", 0.001, 0, 0, 0}, {"wal-fsync", "etcd-0", 0.0006, 0, 0, 0}}, result.Healthy, ""},
		"too little for a link before etcd 3.7":             {plane{{"peer-slow", "etcd-1", 0.001, 0.008, 20, 30}, {"peer-round-trip", "etcd-0", 0.001, 0, 0, 0}, {"wal-fsync", "etcd-0", 0.0006, 0, 0, 0}}, result.Healthy, ""},
		"a slow webhook while the API server hangs":         {plane{{"hangs", "etcd-0", 0.05, 10, 20, 23}, {"hangs", "kube-apiserver-0", 0.05, 4.6, 21, 22}, {"webhook", "review", 0, 0.4, 20, 30}}, result.Diagnosed, "paused of etcd-0; webhook-slow of review"},
		"the link to etcd":                                  {plane{{"etcd-link", "kube-apiserver-0", 0.001, 0.04, 20, 30}, {"etcd-own", "etcd-0", 0.002, 0, 0, 0}}, result.Diagnosed, "etcd-link of kube-apiserver-0"},
		"killed, and the scheduler with it":                 {plane{{"started", "etcd-1", 0, 1, 20, 22}, {"server-errors", "kube-apiserver-0", 0, 9, 20, 23}, {"peers-lost", "etcd-0", 0, 2, 20, 23}, {"started", "kube-scheduler-0", 0, 1, 23, 25}}, result.Diagnosed, "killed of etcd-1"},
		"killed, and slow to answer after its start":        {plane{{"started", "etcd-1", 0, 1, 20, 22}, {"hangs", "etcd-1", 0.05, 10, 22, 24}}, result.Diagnosed, "killed of etcd-1"},
		"the scheduler alone":                               {plane{{"started", "kube-scheduler-0", 0, 1, 23, 25}, {"no-lease", "kube-scheduler", 0, 1, 21, 24}}, result.Diagnosed, "killed of kube-scheduler-0"},
		"paused etcd: API servers hang with it":             {plane{{"hangs", "etcd-0", 0.05, 10, 20, 25}, {"hangs", "kube-apiserver-0", 0.05, 10, 20, 25}}, result.Diagnosed, "paused of etcd-0"},
		"cut off, not paused":                               {plane{{"no-leader", "etcd-2", 0, 1, 20, 25}, {"hangs", "kube-apiserver-0", 0.05, 10, 20, 25}, etcdOwn}, result.Diagnosed, "member-cut-off of etcd-2"},
		"at the quota: members were restarted":              {plane{{"quota-use", "etcd-0", 0.01, 3, 20, 26}, {"started", "etcd-0", 0, 1, 19, 21}, {"server-errors", "kube-apiserver-0", 0, 9, 19, 22}, {"refused", "kube-scheduler-0", 0, 1, 22, 23}}, result.Diagnosed, "killed of etcd-0; etcd-quota of etcd-0"},
		"near the quota":                                    {plane{{"quota-near", "etcd-0", 0.5, 0.85, 20, 30}}, result.Healthy, ""},
		"restored":                                          {plane{{"revision", "etcd-0", 0, 1, 20, 22}, {"started", "etcd-0", 0, 1, 19, 22}, {"started", "kube-apiserver-0", 0, 1, 20, 22}}, result.Diagnosed, "etcd-restored of etcd-0"},
		"a webhook that fails is not slow besides":          {plane{{"webhook-open", "review", 0, 5, 20, 30}, webhook}, result.Diagnosed, "webhook-open of review"},
		"webhooks one after another":                        {plane{{"webhook-open", "first", 0, 5, 20, 24}, {"webhook", "second", 0.002, 0.3, 26, 34}}, result.Diagnosed, "webhook-open of first; webhook-slow of second"},
		"a webhook that fails, and a slow disk":             {plane{fsync, commit, {"webhook-rejects", "review", 0, 5, 24, 30}}, result.Diagnosed, "slow-disk of etcd-1; webhook-blocking of review"},
		"commits that wait for the log's disk":              {plane{{"wal-fsync", "etcd-1", 0.0007, 0.0178, 20, 30}, {"backend-commit", "etcd-1", 0.0019, 0.0071, 20, 30}}, result.Diagnosed, "slow-wal-fsync of etcd-1"},
		"busy neighbours make fsync slow":                   {plane{busy, {"run-wait", "etcd-0", 0.0001, 0.003, 20, 30}, {"wal-fsync", "etcd-0", 0.00055, 0.0048, 20, 30}, {"backend-commit", "etcd-0", 0.00108, 0.0104, 20, 30}}, result.Healthy, ""},
		"busy neighbours make clients slow":                 {plane{busy, {"run-wait", "etcd-0", 0.0001, 0.003, 20, 30}, {"wal-fsync", "etcd-0", 0.00055, 0.0048, 20, 30}, {"clients-slow", "loadgen", 0.02, 0.5, 20, 30}}, result.Diagnosed, "machine of loadgen"},
		"neighbours that were busy before too":              {plane{{"machine-others", "loadgen", 0.5, 0, 0, 0}, {"clients-slow", "loadgen", 0.02, 0.5, 20, 30}, fsync}, result.Diagnosed, "slow-wal-fsync of etcd-1"},
		"a slow disk next to busy neighbours":               {plane{busy, {"run-wait", "etcd-1", 0.0001, 0.0003, 20, 30}, fsync, writes}, result.Diagnosed, "slow-wal-fsync of etcd-1"},
		"a link next to busy neighbours":                    {plane{{"machine-others", "loadgen", 0.6, 0, 0, 0}, {"etcd-link", "kube-apiserver-0", 0.001, 0.055, 20, 30}, {"etcd-own", "etcd-0", 0.002, 0, 0, 0}, {"clients-slow", "loadgen", 0.1, 0.5, 20, 30}}, result.Diagnosed, "etcd-link of kube-apiserver-0"},
		"one out of descriptors, then another stops":        {plane{{"descriptors-out", "kube-apiserver-0", 0, 1, 20, 24}, {"hangs", "etcd-0", 0.05, 10, 25, 28}}, result.Diagnosed, "descriptors of kube-apiserver-0; paused of etcd-0"},
		"heartbeats that busy neighbours delay":             {plane{busy, {"heartbeats-late", "loadgen", 0, 2, 22, 30}, {"generator-timers", "loadgen", 0.01, 0.6, 20, 30}, {"clients-slow", "loadgen", 0.02, 0.5, 20, 30}}, result.Diagnosed, "machine of loadgen"},
		"no room next to busy neighbours":                   {plane{busy, {"heartbeats-late", "loadgen", 0, 2, 21, 30}, {"generator-timers", "loadgen", 0.01, 0.6, 20, 30}, {"unschedulable", "kube-scheduler", 0, 10, 22, 30}}, result.Diagnosed, "unschedulable of kube-scheduler"},
		"a full level next to busy neighbours":              {plane{busy, {"flow-rejected", "tiny", 0, 90, 22, 30}, {"failed", "429", 0, 0.4, 22, 30}}, result.Diagnosed, "fairness of tiny"},
		"a webhook next to busy neighbours":                 {plane{busy, {"run-queue", "kube-apiserver-0", 0.0001, 0.001, 20, 30}, {"run-wait", "kube-apiserver-0", 0.0001, 0.001, 20, 30}, webhook, writes}, result.Diagnosed, "webhook-slow of review"},
		"nodes fall silent next to busy neighbours":         {plane{busy, {"nodes-silent", "zone-0", 0, 50, 21, 40}}, result.Diagnosed, "nodes-silent of zone-0"},
		"a flood whose last requests time out":              {plane{{"more-requests", "widgets", 0, 343, 20, 25}, {"etcd-errors", "kube-apiserver-0", 0, 18, 29, 33}, {"clients-slow", "loadgen", 0.02, 9, 20, 33}}, result.Diagnosed, "more-requests of widgets"},
		"silent nodes lose their pods":                      {plane{busy, {"nodes-silent", "zone-0", 0, 50, 21, 40}, {"taint-evictions", "kube-controller-manager", 0, 20, 23, 30}}, result.Diagnosed, "nodes-silent of zone-0"},
		"busy neighbours make etcd slow":                    {plane{busy, {"etcd-own", "etcd-2", 0.005, 0.037, 20, 30}, {"etcd-far", "etcd-2", 0.005, 0.037, 20, 30}, {"peer-round-trip", "etcd-0", 0.02, 0, 0, 0}, {"wal-fsync", "etcd-0", 0.008, 0, 0, 0}, {"clients-slow", "loadgen", 0.02, 0.5, 20, 30}}, result.Diagnosed, "machine of loadgen"},
		"links of members next to busy neighbours":          {plane{busy, {"etcd-own", "etcd-2", 0.005, 0.057, 20, 30}, {"etcd-far", "etcd-2", 0.005, 0.057, 20, 30}, {"peer-round-trip", "etcd-0", 0.02, 0, 0, 0}, {"wal-fsync", "etcd-0", 0.008, 0, 0, 0}, {"clients-slow", "loadgen", 0.02, 0.5, 20, 30}}, result.Diagnosed, "peer-link of etcd-2"},
		"nodes fall silent as the API is away":              {plane{{"hangs", "kube-apiserver-0", 0.05, 10, 20, 30}, {"nodes-silent", "zone-0", 0, 50, 28, 40}}, result.Diagnosed, "paused of kube-apiserver-0"},
		"refused in the comparison period too":              {plane{{"refused", "kube-scheduler-0", 1, 1, 0, 60}}, result.CannotTell, ""},
		"slow scrapes of a large API server":                {plane{{"hangs", "kube-apiserver-0", 1.5, 3, 20, 30}}, result.Healthy, ""},
		"lists that use all processors":                     {plane{{"lists", "events", 100, 90000, 20, 30}, {"machine-full", "loadgen", 0, 0.95, 20, 30}, {"cpu", "kube-apiserver-0", 0.1, 0.95, 20, 30}}, result.Diagnosed, "heavy-lists of events"},
		"the generator's own":                               {plane{{"generator-lag", "loadgen", 0.001, 0.4, 20, 30}}, result.Diagnosed, "generator of loadgen"},
		"more work than a client's own limit allows":        {plane{{"client-limit", "kube-controller-manager", 0.03, 0.8, 20, 30}, {"client-slower", "kube-controller-manager", 28, 33, 20, 30}}, result.Healthy, ""},
		"a client's limit is lower than before":             {plane{{"client-limit", "kube-controller-manager", 0.03, 0.8, 20, 30}, {"client-slower", "kube-controller-manager", 28, 9, 20, 30}}, result.Diagnosed, "client-limit of kube-controller-manager"},
		"the machine":                                       {plane{busy, {"generator-lag", "loadgen", 0.001, 0.4, 20, 30}}, result.Diagnosed, "machine of loadgen"},
		"a list flood by a process of this machine":         {plane{{"machine-others", "loadgen", 0.01, 0.5, 21, 30}, {"lists", "pods", 100, 90000, 20, 30}, {"clients-slow", "loadgen", 0.02, 0.5, 20, 30}}, result.Diagnosed, "heavy-lists of pods"},
		"a 403 storm":                                       {plane{{"forbidden", "kube-apiserver", 0.1, 500, 20, 30}, {"refusals", "403", 0, 500, 20, 30}}, result.Diagnosed, "forbidden of kube-apiserver"},
		"a 403 storm from the beginning on":                 {plane{{"forbidden-share", "kube-apiserver", 0.6, 0, 0, 0}}, result.Diagnosed, "forbidden of kube-apiserver"},
		"a 422 storm":                                       {plane{{"refusals", "422", 0, 40, 20, 30}}, result.Diagnosed, "refused-requests of 422"},
		"watchers that never read":                          {plane{{"watchers-ended", "configmaps", 0, 20, 20, 21}, {"watchers-behind", "configmaps", 0, 20, 20, 21}}, result.Diagnosed, "watch-overload of configmaps"},
		"a namespace that a finalizer holds":                {plane{{"namespaces-held", "kube-controller-manager", 0, 1.5, 20, 30}}, result.Diagnosed, "namespaces-held of kube-controller-manager"},
		"a namespace that goes in its time":                 {plane{{"namespaces-held", "kube-controller-manager", 0, 1.5, 20, 22}}, result.Healthy, ""},
		"pods that wait for a gate":                         {plane{{"pods-not-ready", "loadgen", 0, 20, 20, 30}}, result.Diagnosed, "pods-not-ready of loadgen"},
		"pods that fit on no node in the comparison period": {plane{{"unschedulable", "kube-scheduler", 0, 5, 3, 60}}, result.Diagnosed, "unschedulable of kube-scheduler"},
		"a storage that starts again":                       {plane{{"throttled", "things", 0, 1, 20, 21}}, result.Healthy, ""},
		"a storage that fails clients' requests":            {plane{{"throttled", "things", 0, 9, 20, 30}, {"failed", "429", 0, 0.1, 20, 30}}, result.Diagnosed, "throttled of things"},
		"a webhook that is slow all the time":               {plane{{"webhook", "review", 2, 0, 0, 0}, {"unsent", "loadgen", 6, 0, 0, 0}}, result.Diagnosed, "webhook-slow of review"},
		"a busy machine ends no watches":                    {plane{busy, {"watchers-ended", "configmaps", 0, 20, 24, 25}, {"watchers-behind", "configmaps", 0, 20, 24, 25}, {"pods-not-ready", "loadgen", 0, 20, 22, 30}}, result.Diagnosed, "pods-not-ready of loadgen; watch-overload of configmaps"},
		"scrapes that are answered with 429":                {plane{{"scrape-429", "kube-apiserver-0", 0, 1, 20, 22}}, result.Diagnosed, "scrapes-throttled of kube-apiserver-0"},
		"watches of clients that are starved":               {plane{busy, {"watchers-ended", "pods", 0, 4, 24, 26}}, result.Diagnosed, "machine of loadgen"},
		"429 of a full priority level":                      {plane{{"throttled", "configmaps", 0, 90, 20, 30}, {"flow-rejected", "workload-low", 0, 90, 20, 30}, {"scrape-429", "kube-apiserver-0", 0, 1, 22, 24}, {"failed", "429", 0, 0.23, 20, 30}, {"unsent", "loadgen", 0, 40, 20, 30}}, result.Diagnosed, "fairness of workload-low"},
		"requests that fail from the beginning on":          {plane{{"failed", "429", 0.23, 0, 0, 0}}, result.Unknown, ""},
		"slow clients without a cause":                      {plane{{"clients-slow", "loadgen", 0.02, 0.4, 20, 30}}, result.Unknown, ""},
		"clients slow from the beginning on":                {plane{{"clients-slow", "loadgen", 1.4, 0, 0, 0}}, result.Unknown, ""},
		"nodes that come back at once":                      {plane{{"more-requests", "leases", 20, 400, 20, 24}, {"clients-slow", "loadgen", 0.023, 0.414, 20, 24}}, result.Diagnosed, "more-requests of leases"},
		"expired tokens":                                    {plane{{"unauthenticated", "kube-apiserver", 0, 40, 20, 30}}, result.Diagnosed, "unauthenticated of kube-apiserver"},
		"tokens that a service cannot review":               {plane{tokens, {"unauthenticated", "kube-apiserver", 0, 40, 20, 30}, {"authentication-errors", "kube-apiserver-0", 0, 40, 20, 30}}, result.Diagnosed, "authentication of kube-apiserver-0"},
		"requests for an API that is not there":             {plane{{"unserved", "kube-apiserver", 2, 160, 20, 30}}, result.Diagnosed, "misses of kube-apiserver"},
		"no service that reviews tokens":                    {plane{{"authentication", "kube-apiserver-0", 0.0001, 0.3, 20, 30}}, result.Healthy, ""},
		"a cut of writes that make clients wait":            {plane{{"client-limit", "kube-controller-manager", 0.03, 0.8, 20, 30}, {"pod-startup", "loadgen", 1, 9, 22, 30}}, result.Diagnosed, "client-limit-reached of kube-controller-manager"},
		"a fault in the first quarter":                      {plane{{"wal-fsync", "etcd-1", 0.0006, 0.026, 9, 30}, writes}, result.Diagnosed, "slow-wal-fsync of etcd-1"},
		"killed in the first quarter":                       {plane{{"started", "etcd-1", 0, 1, 6, 8}}, result.Diagnosed, "killed of etcd-1"},
		"the scheduler is killed after etcd":                {plane{{"started", "etcd-1", 0, 1, 20, 22}, {"started", "kube-scheduler-0", 0, 1, 25, 27}}, result.Diagnosed, "killed of etcd-1; killed of kube-scheduler-0"},
		"controllers are killed after a scheduler":          {plane{{"started", "kube-scheduler-0", 0, 1, 20, 22}, {"started", "kube-controller-manager-0", 0, 1, 23, 25}}, result.Diagnosed, "killed of kube-scheduler-0; killed of kube-controller-manager-0"},
		"an election alone":                                 {plane{{"leader-changes", "etcd-1", 0, 1, 20, 22}}, result.Diagnosed, "leader-lost of etcd-1"},
		"watches with very many events":                     {plane{{"watch-events", "kube-apiserver-0", 500, 30000, 20, 30}, {"machine-full", "loadgen", 0, 0.93, 20, 30}, {"etcd-link", "kube-apiserver-0", 0.001, 0.02, 20, 30}, {"etcd-own", "etcd-0", 0.002, 0, 0, 0}}, result.Healthy, ""},
		"events that make writes slow":                      {plane{{"watch-events", "kube-apiserver-0", 500, 30000, 20, 30}, writes}, result.Diagnosed, "watch-fan-out of kube-apiserver-0"},
		"a load that fills the machine":                     {plane{{"machine-full", "loadgen", 0, 0.98, 20, 30}, {"etcd-slow", "kube-apiserver-0", 0.02, 0.3, 20, 30}}, result.Healthy, ""},
		"a load that the machine cannot carry":              {plane{{"machine-full", "loadgen", 0, 0.98, 20, 30}, {"etcd-slow", "kube-apiserver-0", 0.02, 0.3, 20, 30}, writes}, result.Diagnosed, "machine-full of loadgen"},
		"an idle API server that is cut off":                {plane{{"etcd-unseen", "kube-apiserver-1", 0, 1, 20, 30}}, result.Diagnosed, "api-cut-off of kube-apiserver-1"},
		"the token webhook is away":                         {plane{{"refused", "token-webhook-0", 0, 1, 20, 30}, {"authentication-errors", "kube-apiserver-0", 0, 9, 22, 30}}, result.Diagnosed, "down of token-webhook-0"},
		"a plugin that came back":                           {plane{{"refused", "kms-plugin-0", 0, 1, 20, 24}, {"started", "kms-plugin-0", 0, 1, 24, 26}}, result.Diagnosed, "killed of kms-plugin-0"},
		"an API server that comes up slowly":                {plane{{"refused", "kube-apiserver-0", 0, 1, 20, 22}, {"hangs", "kube-apiserver-0", 0.05, 10, 22, 24}, {"started", "kube-apiserver-0", 0, 1, 24, 25}, {"hangs", "kube-scheduler-0", 0.05, 10, 20, 24}}, result.Diagnosed, "killed of kube-apiserver-0"},
		"a scheduler that stays away":                       {plane{{"refused", "kube-scheduler-0", 0, 1, 20, 50}, {"no-lease", "kube-scheduler", 0, 1, 21, 50}}, result.Diagnosed, "down of kube-scheduler-0"},
		"a scheduler's death refuses no token":              {plane{tokens, {"started", "kube-scheduler-0", 0, 1, 20, 22}, {"authentication-errors", "kube-apiserver-0", 0, 9, 20, 30}}, result.Diagnosed, "killed of kube-scheduler-0; authentication of kube-apiserver-0"},
		"reviews of tokens fail":                            {plane{tokens, {"authentication-errors", "kube-apiserver-0", 0, 9, 20, 30}, {"authentication", "kube-apiserver-0", 0.001, 3, 20, 30}}, result.Diagnosed, "authentication of kube-apiserver-0"},
		"an authorization webhook fails":                    {plane{{"authorization-errors", "webhook", 0, 9, 20, 30}, {"authorization", "webhook", 0.002, 4, 20, 30}, writes}, result.Diagnosed, "authorization of webhook"},
		"the KMS plugin fails":                              {plane{{"kms-errors", "kms", 0, 1, 20, 30}, {"server-errors", "kube-apiserver-0", 0, 9, 24, 30}}, result.Diagnosed, "kms of kms"},
		"a conversion webhook is slow":                      {plane{{"conversion", "orders.example.com", 0.002, 0.2, 20, 30}}, result.Diagnosed, "conversion of orders.example.com"},
		"metrics-server hangs":                              {plane{{"hangs", "metrics-server-0", 0.05, 10, 20, 30}, {"api-unavailable", "v1beta1.metrics.k8s.io", 0, 1, 24, 30}}, result.Diagnosed, "paused of metrics-server-0"},
		"an aggregated API's backend is away":               {plane{{"api-unavailable", "v1beta1.metrics.k8s.io", 0, 1, 24, 30}}, result.Diagnosed, "api-unavailable of v1beta1.metrics.k8s.io"},
		"an audit backend holds answers back":               {plane{{"requests", "loadgen", 0.01, 6, 21, 30}, {"unanswered", "loadgen", 0, 190, 20, 31}}, result.Diagnosed, "answers-held of loadgen"},
		"writes that are slow are not held back":            {plane{{"requests", "loadgen", 0.01, 6, 21, 30}, {"unanswered", "loadgen", 0, 190, 20, 31}, writes, {"webhook", "review", 0.002, 1.3, 20, 30}}, result.Diagnosed, "webhook-slow of review"},
		"what a restore stops":                              {plane{{"refused", "kube-scheduler-0", 0, 1, 20, 27}, {"started", "kube-scheduler-0", 0, 1, 28, 30}, {"revision", "etcd-0", 0, 1, 25, 27}}, result.Diagnosed, "etcd-restored of etcd-0"},
		"a webhook runs out of time after a pause":          {plane{{"hangs", "kube-apiserver-0", 0.05, 10, 20, 25}, {"authorization-errors", "webhook", 0, 9, 26, 30}}, result.Diagnosed, "paused of kube-apiserver-0"},
		"scrapes hang as a webhook fails at once":           {plane{{"authorization-errors", "webhook", 0, 9, 20, 30}, {"hangs", "kube-apiserver-0", 0.05, 10, 20, 30}}, result.Diagnosed, "authorization of webhook"},
		"scrapes that ask a webhook that fails":             {plane{{"authorization-errors", "webhook", 0, 9, 20, 30}, {"hangs", "kube-apiserver-0", 0.05, 10, 23, 30}}, result.Diagnosed, "authorization of webhook"},
		"a short kill hides no lasting failure":             {plane{{"started", "etcd-1", 0, 1, 20, 22}, {"webhook-rejects", "review", 0, 5, 21, 55}}, result.Diagnosed, "killed of etcd-1; webhook-blocking of review"},
		"what a kill leaves behind for a while":             {plane{{"started", "kube-apiserver-0", 0, 1, 20, 22}, {"webhook-rejects", "review", 0, 5, 21, 27}}, result.Diagnosed, "killed of kube-apiserver-0"},
		"a link slower than etcd's slow disk":               {plane{fsync, etcdOwn, {"etcd-link", "kube-apiserver-0", 0.001, 0.09, 20, 30}}, result.Diagnosed, "slow-wal-fsync of etcd-1; etcd-link of kube-apiserver-0"},
		"requests wait for etcd's slow disk":                {plane{fsync, etcdOwn, {"etcd-link", "kube-apiserver-0", 0.001, 0.03, 20, 30}}, result.Diagnosed, "slow-wal-fsync of etcd-1"},
		"requests wait in the API server":                   {plane{{"etcd-link", "kube-apiserver-0", 0.001, 0.04, 20, 30}, {"run-queue", "kube-apiserver-0", 0.0001, 0.02, 20, 30}, {"etcd-own", "etcd-0", 0.002, 0, 0, 0}}, result.Healthy, ""},
		"a link, and a shorter run queue":                   {plane{{"etcd-link", "kube-apiserver-0", 0.001, 0.1, 20, 30}, {"run-queue", "kube-apiserver-0", 0.0001, 0.01, 20, 30}, {"etcd-own", "etcd-0", 0.002, 0, 0, 0}}, result.Diagnosed, "etcd-link of kube-apiserver-0"},
		"requests that were given up in a pause":            {plane{{"hangs", "kube-apiserver-0", 0.05, 8, 21, 22}, {"etcd-errors", "kube-apiserver-0", 0, 28, 20, 22}}, result.Diagnosed, "paused of kube-apiserver-0"},
		"a link, on a machine that is always full":          {plane{{"etcd-link", "kube-apiserver-0", 0.003, 0.05, 20, 30}, {"machine-busy", "loadgen", 0.95, 0, 0, 0}, {"etcd-own", "etcd-0", 0.002, 0, 0, 0}}, result.Diagnosed, "etcd-link of kube-apiserver-0"},
		"a machine that is always full":                     {plane{{"etcd-link", "kube-apiserver-0", 0.01, 0.05, 20, 30}, {"run-wait", "kube-apiserver-0", 0.012, 0, 0, 0}, {"etcd-own", "etcd-0", 0.002, 0, 0, 0}}, result.Healthy, ""},
		"links that probes found calm":                      {plane{{"etcd-own", "etcd-1", 0.002, 0.06, 20, 55}, {"peer-round-trip", "etcd-0", 0.001, 0, 0, 0}, {"wal-fsync", "etcd-0", 0.0006, 0, 0, 0}}, result.Healthy, ""},
		"links that probes found slow":                      {plane{{"etcd-own", "etcd-1", 0.002, 0.06, 20, 55}, {"peer-round-trip", "etcd-0", 0.001, 0.03, 25, 55}, {"wal-fsync", "etcd-0", 0.0006, 0, 0, 0}}, result.Diagnosed, "peer-link of etcd-1"},
		"a member that others lost":                         {plane{{"peers-lost", "etcd-0", 0, 1, 20, 23}, {"peers-lost", "etcd-1", 0, 1, 20, 23}}, result.Diagnosed, "member-silent of etcd-0,etcd-1"},
		"a member that lost all, and who noticed":           {plane{{"all-peers-lost", "etcd-2", 0, 1, 20, 23}, {"peers-lost", "etcd-0", 0, 1, 20, 23}, {"peers-lost", "etcd-2", 0, 2, 20, 23}}, result.Diagnosed, "member-cut-off of etcd-2"},
		"a webhook that takes ten seconds":                  {plane{{"webhook", "review", 0.002, 9.9, 20, 30}, {"etcd-silent", "kube-apiserver-0", 0.1, 50, 21, 30}, writes}, result.Diagnosed, "webhook-slow of review"},
		"slow for clients alone":                            {plane{{"requests", "loadgen", 0.01, 6, 21, 30}}, result.Unknown, ""},
		"an extender is slow":                               {plane{{"choosing", "kube-scheduler-0", 0.001, 0.1, 20, 30}}, result.Diagnosed, "choosing of kube-scheduler-0"},
		"links of an etcd before 3.7":                       {plane{{"peer-slow", "etcd-1", 0.001, 0.061, 20, 50}, {"peer-round-trip", "etcd-1", 0.001, 0.061, 20, 50}}, result.Diagnosed, "peer-link of etcd-1"},
		"a webhook that was not called before":              {plane{{"webhook", "review", math.NaN(), 0.12, 20, 30}}, result.Healthy, ""},
		"one that is slow from its first call on":           {plane{{"webhook", "review", math.NaN(), 0.8, 20, 30}}, result.Diagnosed, "webhook-slow of review"},
		"a symptom alone":                                   {plane{writes, {"webhook", "review", 0.002, 0.032, 20, 30}}, result.Unknown, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := diagnose(t, c.plane)
			if d.Answer != c.answer || causesOf(d) != c.causes || d.Answer == result.Diagnosed && len(d.Symptoms) > 0 {
				t.Errorf("%s: %s\nwant %s: %s\n%+v", d.Answer, causesOf(d), c.answer, c.causes, d.Symptoms)
			}
		})
	}
}

func TestWhatIsSaidOfACause(t *testing.T) {
	d := diagnose(t, plane{{"wal-fsync", "etcd-1", 0.0006, 0.026, 26, 36}, {"backend-commit", "etcd-1", 0.001, 0, 0, 0}, {"writes", "kube-apiserver-0", 0.01, 1.5, 27, 36}})
	c := d.Causes[0]
	if want := "etcd-1: WAL fsync (606 µs -> 26 ms) from 14:02:05. Unchanged: CPU, commit"; c.Sentence != want {
		t.Errorf("sentence = %q, want %q", c.Sentence, want)
	}
	if len(c.Explains) != 1 || c.Explains[0].What != "mean time of writes" || len(d.Symptoms) != 0 {
		t.Errorf("explains %+v, leaves %+v", c.Explains, d.Symptoms)
	}
	if want := begin.Add(25 * step); !c.Began.Equal(want) || !c.Ended.Equal(begin.Add(36*step)) {
		t.Errorf("the cause lasted from %s to %s, want from the scrape before the deviation, %s", c.Began, c.Ended, want)
	}
}

func TestUnknownNamesTheNearest(t *testing.T) {
	d := diagnose(t, plane{{"writes", "kube-apiserver-0", 0.01, 1.5, 20, 31}, {"webhook", "review", 0.002, 0.032, 20, 30}, {"etcd-link", "kube-apiserver-0", 0.001, 0.012, 20, 30}, {"etcd-own", "etcd-0", 0.002, 0, 0, 0}})
	var kinds []string
	for _, c := range d.Nearest {
		kinds = append(kinds, c.Kind)
	}
	slices.Sort(kinds)
	if d.Answer != result.Unknown || !slices.Equal(kinds, []string{"etcd-link", "webhook-slow"}) {
		t.Errorf("%s, nearest %v", d.Answer, kinds)
	}
}

// On other clusters instances are addresses, and the job names the kind.
func TestComponents(t *testing.T) {
	for _, c := range []struct{ signal, component, job, want string }{
		{"hangs", "kube-apiserver-0", "kube-apiserver", "kube-apiserver-0"},
		{"hangs", "10.0.0.7:6443", "kube-apiserver", "kube-apiserver 10.0.0.7:6443"},
		{"webhook", "review.example.com", "", "review.example.com"},
		{"nodes-silent", ":\x00:zone-0", "", "zone-0"},
		{"nodes-silent", "eu-west-1:\x00:eu-west-1a", "", "eu-west-1/eu-west-1a"},
	} {
		s := known.signal(c.signal)
		if got := componentOf(archive.Series{Labels: map[string]string{s.Component: c.component, "job": c.job}}, s); got != c.want {
			t.Errorf("%s of %s is %q, want %q", c.signal, c.component, got, c.want)
		}
	}
}

// The default comparison period, an hour, ends before an outage that lasts, and includes an outage that is over.
func TestOutageInTheCalmHour(t *testing.T) {
	const minute = int(time.Minute / step)
	for name, c := range map[string]struct {
		fsync  moves
		causes string
	}{
		"since forty minutes":   {moves{"wal-fsync", "etcd-1", 0.0006, 0.026, 22 * minute, 63 * minute}, "slow-wal-fsync of etcd-1"},
		"over for half an hour": {moves{"wal-fsync", "etcd-1", 0.0006, 0.026, 22 * minute, 30 * minute}, ""},
	} {
		calm := CalmBefore(begin.Add(time.Hour))
		d, err := Diagnose(context.Background(), plane{answers, c.fsync}, Options{
			From: calm.From, To: begin.Add(62 * time.Minute), Calm: calm, CalmByDefault: true, Under: result.Span{From: calm.To, To: calm.To.Add(2 * time.Minute)}, Step: step,
		})
		if err != nil || causesOf(d) != c.causes {
			t.Errorf("%s: %s: %s, compared with %v: %v", name, d.Answer, causesOf(d), d.Calm, err)
		}
	}
}

// A process that was not scraped in the comparison period is not compared with anything.
func TestNewMemberIsNoDeviation(t *testing.T) {
	p := scraped{plane{answers, {"wal-fsync", "etcd-3", 0.004, 0, 0, 0}, {"authentication", "kube-apiserver-3", 0.3, 0, 0, 0}, {"wal-fsync", "etcd-0", 0.0006, 0, 0, 0}}, joins}
	d, err := Diagnose(context.Background(), p, Options{From: begin, To: begin.Add(60 * step), Step: step})
	if err != nil || asWhole(d).Answer != result.Healthy {
		t.Errorf("%s: %s: %v", d.Answer, causesOf(d), err)
	}
}

// A signal that was recorded only in the comparison period counts as missing, and not as unchanged.
func TestRecordedInTheCalmTimeOnly(t *testing.T) {
	p := scraped{plane{{"cpu", "kube-apiserver-1", 0.05, 0, 0, 0}, {"wal-fsync", "etcd-0", 0.0006, 0, 0, 0}, {"webhook", "review", 0.002, 0.3, 20, 30}}, leaves}
	o := Options{From: begin, To: begin.Add(60 * step), Step: step, Calm: result.Span{From: begin, To: begin.Add(14 * step)}, Under: result.Span{From: begin.Add(16 * step), To: begin.Add(60 * step)}}
	d, err := Diagnose(context.Background(), p, o)
	if err != nil || causesOf(d) != "webhook-slow of review" || !slices.Contains(d.Lacked, "wal-fsync") || strings.Contains(d.Causes[0].Sentence, "fsync") {
		t.Errorf("%+v, lacks %v: %v", d.Causes, d.Lacked, err)
	}
}

// Without an API server in the comparison period there is nothing to compare with.
func TestNoAPIServerInTheCalmTime(t *testing.T) {
	p := scraped{plane{{"cpu", "kube-apiserver-3", 0.05, 0, 0, 0}, {"reads", "kube-apiserver-3", 10, 0, 0, 0}, {"wal-fsync", "etcd-0", 0.0006, 0, 0, 0}}, joins}
	if d, err := Diagnose(context.Background(), p, Options{From: begin, To: begin.Add(60 * step), Step: step}); err != nil || d.Answer != result.CannotTell || !strings.Contains(d.Doubts[0], "in the comparison period") {
		t.Errorf("%s, as %q: %v", d.Answer, d.Doubts, err)
	}
}

// The time that a user names is diagnosed unchanged, even after a disturbed comparison period.
func TestNamedTimeStays(t *testing.T) {
	under := result.Span{From: begin.Add(12 * step), To: begin.Add(60 * step)}
	p := plane{answers, {"wal-fsync", "etcd-1", 0.0006, 0.026, 9, 30}}
	d, err := Diagnose(context.Background(), p, Options{From: begin, To: under.To, Step: step, Under: under})
	if err != nil || d.Under != under || causesOf(d) != "slow-wal-fsync of etcd-1" {
		t.Errorf("%v, %s: %v", d.Under, causesOf(d), err)
	}
}

// A series of NaN only, such as a ratio of missing metrics, counts as no data.
func TestNoNumberIsNoData(t *testing.T) {
	d := diagnose(t, plane{{"wal-fsync", "etcd-0", math.NaN(), 0, 0, 0}, {"backend-commit", "etcd-0", 0.001, 0, 0, 0}})
	if !slices.Contains(d.Lacked, "wal-fsync") || slices.Contains(d.Lacked, "backend-commit") {
		t.Errorf("lacks %v", d.Lacked)
	}
}

// If all processes were replaced, nothing is comparable, and the answer is not healthy.
func TestReplacedProcessesAreNotComparable(t *testing.T) {
	p := scraped{
		plane{{"cpu", "kube-apiserver-0", 0.05, 0, 0, 0}, {"cpu", "kube-apiserver-3", 0.05, 0, 0, 0}, {"wal-fsync", "etcd-0", 0.0006, 0, 0, 0}, {"wal-fsync", "etcd-3", 0.008, 0, 0, 0}},
		func(instance string, at time.Time) bool { return joins(instance, at) && leaves(instance, at) },
	}
	o := Options{From: begin, To: begin.Add(60 * step), Step: step, Calm: result.Span{From: begin, To: begin.Add(14 * step)}, Under: result.Span{From: begin.Add(21 * step), To: begin.Add(60 * step)}}
	if d, err := Diagnose(t.Context(), p, o); err != nil || d.Answer != result.CannotTell || !strings.Contains(d.Doubts[0], "nothing can be compared") {
		t.Errorf("%s, as %q: %v", d.Answer, d.Doubts, err)
	}
	p.plane = append(p.plane, moves{"cpu", "kube-apiserver-1", 0.05, 0, 0, 0}, moves{"webhook", "review", 0.002, 0.3, 25, 40})
	if d, err := Diagnose(t.Context(), p, o); err != nil || causesOf(d) != "webhook-slow of review" || !slices.Contains(d.Lacked, "wal-fsync") || strings.Contains(d.Causes[0].Sentence, "fsync") {
		t.Errorf("an API server that stayed: %+v, lacks %v: %v", d.Causes, d.Lacked, err)
	}
}

// from keeps the scrapes at or after a given time.
func from(then time.Time) func(string, time.Time) bool {
	return func(_ string, at time.Time) bool { return !at.Before(then) }
}

// The default comparison period begins with the first data, or after a disturbance in it that is over. A state that
// never changed is reported as standing.
func TestCalmHourOfWhatThereIs(t *testing.T) {
	const minute = int(time.Minute / step)
	calm := CalmBefore(begin.Add(time.Hour))
	o := Options{From: calm.From, To: begin.Add(62 * time.Minute), Calm: calm, CalmByDefault: true, Under: result.Span{From: calm.To, To: calm.To.Add(2 * time.Minute)}, Step: step}
	down := moves{"refused", "kube-scheduler-0", 1, 1, 0, 0}
	recorded := scraped{plane{answers, {"wal-fsync", "etcd-1", 0.0006, 0.026, 52 * minute, 63 * minute}, down}, from(begin.Add(42 * time.Minute))}
	d, err := Diagnose(t.Context(), recorded, o)
	if err != nil || causesOf(d) != "slow-wal-fsync of etcd-1" || len(d.Standing) != 1 || d.Standing[0].Component != "kube-scheduler-0" {
		t.Errorf("recorded for twenty minutes: %s, as before %+v, compared with %v: %v", causesOf(d), d.Standing, d.Calm, err)
	}
	lasting := plane{answers, {"wal-fsync", "etcd-1", 0.0006, 0.026, 20 * minute, 63 * minute}, {"started", "kube-scheduler-0", 0, 1, 50 * minute, 50*minute + 2}}
	if d, err = Diagnose(t.Context(), lasting, o); err != nil || causesOf(d) != "slow-wal-fsync of etcd-1" {
		t.Errorf("slow for forty minutes, and a restart since then: %s, compared with %v: %v", causesOf(d), d.Calm, err)
	}
	again := plane{answers, {"refused", "kube-scheduler-0", 1, 0, 50 * minute, 60 * minute}}
	if d, err = Diagnose(t.Context(), again, o); err != nil || causesOf(d) != "down of kube-scheduler-0" {
		t.Errorf("down again after ten minutes: %s, as before %+v, compared with %v: %v", causesOf(d), d.Standing, d.Calm, err)
	}
	late := scraped{plane{answers}, from(begin.Add(time.Hour - step))}
	if d, err = Diagnose(t.Context(), late, o); err != nil || d.Answer != result.CannotTell || !strings.Contains(d.Doubts[0], "fewer than 3 scrapes") {
		t.Errorf("recorded for a scrape: %s: %v", d.Answer, err)
	}
}

func TestTooLittleIsNoAnswer(t *testing.T) {
	p := plane{{"wal-fsync", "etcd-1", 0.0006, 0.006, 20, 30}}
	for name, o := range map[string]Options{
		"a run of two scrapes": {From: begin, To: begin.Add(2 * step), Step: step},
		"no comparison period": {From: begin, To: begin.Add(60 * step), Step: step, Under: result.Span{From: begin, To: begin.Add(30 * step)}},
		"no metrics":           {From: begin, To: begin.Add(60 * step), Step: step},
		"no API server":        {From: begin, To: begin.Add(60 * step), Step: step},
		"it ends before then":  {From: begin, To: begin.Add(60 * step), Step: step, Under: result.Span{From: begin.Add(100 * step), To: begin.Add(120 * step)}},
	} {
		from := append(plane{answers}, p...)
		switch name {
		case "no metrics":
			from = nil
		case "no API server":
			from = p
		}
		var source Source = from
		if name == "it ends before then" {
			source = scraped{from, func(_ string, at time.Time) bool { return !at.After(begin.Add(60 * step)) }}
		}
		d, err := Diagnose(context.Background(), source, o)
		if name == "no comparison period" { // objectives can be judged without one
			if err != nil || d.Answer != result.CannotTell || !strings.Contains(strings.Join(d.Doubts, "; "), "fewer than 3 scrapes were recorded before the diagnosed time") {
				t.Errorf("%s: %s, as %q: %v", name, d.Answer, d.Doubts, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("%s: %s", name, d.Answer)
		}
	}
}

// A run with a failed gate is never healthy: the gate is a symptom. A simultaneous cause explains it, or else a limit
// does.
func TestFailedGateIsASymptom(t *testing.T) {
	startup := FailedGate{Name: "startup", Detail: "rollout: 40 samples is 9 s over 5 s", Slow: true, Broken: []result.Span{{From: begin.Add(25 * step), To: begin.Add(40 * step)}}}
	count := startup
	count.Name, count.Slow = "lost", false
	limit := moves{"client-limit", "kube-controller-manager", 0.03, 0.8, 20, 30}
	others := moves{"machine-others", "loadgen", 0.02, 0.6, 20, 30}
	fsync := moves{"wal-fsync", "etcd-1", 0.0006, 0.026, 20, 30}
	refused := moves{"throttled", "things", 0, 1, 28, 29}
	for name, c := range map[string]struct {
		plane    plane
		failed   FailedGate
		answer   string
		causes   string
		symptoms int
	}{
		"nothing moved":                        {plane{}, startup, result.Unknown, "", 1},
		"a cause in its time":                  {plane{fsync}, startup, result.Diagnosed, "slow-wal-fsync of etcd-1", 0},
		"a cause after it":                     {plane{{"wal-fsync", "etcd-1", 0.0006, 0.026, 45, 55}}, startup, result.Diagnosed, "slow-wal-fsync of etcd-1", 1},
		"a limit that a growing load reached":  {plane{limit}, startup, result.Diagnosed, "client-limit-reached of kube-controller-manager", 0},
		"a busy machine makes requests slow":   {plane{others}, startup, result.Diagnosed, "machine of loadgen", 0},
		"a 429 that a gate does not allow":     {plane{refused}, count, result.Diagnosed, "throttled of things", 0},
		"a busy machine loses no watch events": {plane{others}, count, result.Unknown, "", 1},
	} {
		d, err := Diagnose(t.Context(), append(c.plane, answers), Options{From: begin, To: begin.Add(60 * step), Step: step, Failed: []FailedGate{c.failed}})
		if err != nil || d.Answer != c.answer || causesOf(d) != c.causes || len(d.Symptoms) != c.symptoms {
			t.Errorf("%s: %s: %s, symptoms %+v, want %s: %s and %d: %v", name, d.Answer, causesOf(d), d.Symptoms, c.answer, c.causes, c.symptoms, err)
		}
	}
}

// Missing signals and a disturbed comparison period prevent the answer "healthy".
func TestHealthyNeedsEvidence(t *testing.T) {
	d, err := Diagnose(t.Context(), plane{answers}, Options{From: begin, To: begin.Add(60 * step), Step: step})
	if err != nil || d.Answer != result.CannotTell || !strings.HasSuffix(d.Doubts[0], "signals have no data") {
		t.Errorf("%s, as %q: %v", d.Answer, d.Doubts, err)
	}
	named := Options{
		From: begin, To: begin.Add(60 * step), Step: step,
		Calm: result.Span{From: begin, To: begin.Add(20 * step)}, Under: result.Span{From: begin.Add(40 * step), To: begin.Add(60 * step)},
	}
	d, err = Diagnose(t.Context(), plane{answers, {"failed", "429", 0, 0.5, 5, 15}}, named)
	if err != nil || d.Answer != result.CannotTell || !strings.Contains(d.Doubts[0], "the comparison period shows a problem too: 429: ") {
		t.Errorf("a named comparison period with trouble: %s, as %q: %v", d.Answer, d.Doubts, err)
	}
	d, err = Diagnose(t.Context(), plane{answers}, Options{From: begin, To: begin.Add(60 * step), Step: step, NoData: []string{"unsent", "lost"}})
	if err != nil || asWhole(d).Answer != result.CannotTell || d.Doubts[len(d.Doubts)-1] != "gates without data: unsent, lost" {
		t.Errorf("gates without data: %s, as %q: %v", d.Answer, d.Doubts, err)
	}
}

// A cluster without a generator does not lack the generator's signals. A run does.
func TestSignalsOfTheGeneratorAreLackedByRuns(t *testing.T) {
	for name, p := range map[string]plane{"a Prometheus": {answers}, "a run": {answers, {"cpu", "loadgen", 0.05, 0, 0, 0}}} {
		d, err := Diagnose(t.Context(), p, Options{From: begin, To: begin.Add(60 * step), Step: step})
		if err != nil || slices.Contains(d.Lacked, "clients-slow") != (name == "a run") || !slices.Contains(d.Lacked, "wal-fsync") {
			t.Errorf("%s lacks %v: %v", name, d.Lacked, err)
		}
	}
}

// A latency that waiting for a processor explains is no evidence, even if the machine was not busy in the comparison period.
func TestStarvationIsSubtracted(t *testing.T) {
	for wait, want := range map[float64]string{0.0003: "slow-wal-fsync of etcd-1", 0.002: ""} {
		d := diagnose(t, plane{{"wal-fsync", "etcd-1", 0.0006, 0.026, 20, 30}, {"run-wait", "etcd-1", wait, 0, 0, 0}})
		if causesOf(d) != want {
			t.Errorf("fsync of 26 ms, threads wait for %g s: %q, want %q", wait, causesOf(d), want)
		}
	}
}

// TestBurstsOfCalls: a webhook that is called in bursts has no latency between the bursts. A short gap does not count
// as a value without deviation.
func TestBurstsOfCalls(t *testing.T) {
	for name, c := range map[string]struct {
		slow []int // evaluations that see slow calls: a burst shows in two
		fast []int
		want int
	}{
		"one burst":                  {slow: []int{20, 21}},
		"two bursts":                 {slow: []int{20, 21, 24, 25}, want: 1},
		"fast calls between":         {slow: []int{20, 21, 26, 27}, fast: []int{22, 23, 24, 25}},
		"bursts far apart":           {slow: []int{20, 21, 40, 41}},
		"long bursts that are apart": {slow: []int{20, 21, 22, 40, 41, 42}, want: 2},
	} {
		var points []archive.Point
		for n := range 60 {
			v := math.NaN()
			switch {
			case slices.Contains(c.slow, n):
				v = 6
			case n < 10 || slices.Contains(c.fast, n):
				v = 0.002
			}
			points = append(points, archive.Point{T: begin.Add(time.Duration(n) * 2 * time.Second), V: v})
		}
		calm, under := result.Span{From: begin, To: begin.Add(20 * time.Second)}, result.Span{From: begin.Add(20 * time.Second), To: begin.Add(2 * time.Minute)}
		got := series{signal: known.signal("webhook"), component: "binding", points: points}.episodes(calm, under, 2*time.Second, 1, nil)
		if len(got) != c.want {
			t.Errorf("%s: %d episodes, want %d: %+v", name, len(got), c.want, got)
		}
	}
}
