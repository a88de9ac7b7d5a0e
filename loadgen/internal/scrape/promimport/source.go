package promimport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

const (
	// askTimeout is the timeout of an instant query.
	askTimeout = 30 * time.Second
	// rangeTimeout is the timeout of a range query. By default, a Prometheus server aborts a query after two minutes.
	rangeTimeout = 2*time.Minute + askTimeout
	// lookBack is the length of the window before now in which Find searches for targets and measures their scrape
	// intervals.
	lookBack = 10 * time.Minute
	// usualInterval is the default scrape interval of Prometheus. It applies to a target that was scraped only once so
	// far.
	usualInterval = time.Minute
)

// Target is a target that the Prometheus server scrapes.
type Target struct {
	// Job is the kind of the component. Instance is the instance label in the run's archive; it is unique among the
	// targets.
	Job, Instance string
	// Interval is the time between scrapes of the target.
	Interval time.Duration

	key key
}

// key identifies a target by its labels job and instance in the Prometheus server.
type key struct{ job, instance string }

// tick is one scrape: its time in ms by the Prometheus server's clock, and whether the target answered.
type tick struct {
	at int64
	up bool
}

// Find finds the targets of the cluster and measures the difference between the clocks. Errors have one line with a
// hint.
func (s *Source) Find(ctx context.Context) error {
	asked := s.clock()
	now, err := s.now(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", s.url, explain(err, askTimeout))
	}
	if err := s.NameJobs(ctx); err != nil {
		return fmt.Errorf("%s: %w", s.url, err)
	}
	s.ahead = now.UnixMilli() - asked.Add(s.clock().Sub(asked)/2).UnixMilli()
	found, err := s.ups(ctx, now, lookBack)
	if err != nil {
		return fmt.Errorf("%s: %w", s.url, explain(err, askTimeout))
	}
	if err := current(found, now); err != nil {
		return fmt.Errorf("%s: %w", s.url, err)
	}
	if err := oneCluster(found); err != nil {
		return fmt.Errorf("%s: %w", s.url, err)
	}
	if len(found) == 0 {
		return fmt.Errorf("%s: %w", s.url, s.FoundNone(ctx))
	}
	s.targets = s.name(found)
	return nil
}

// Ambiguous returns a text that asks the user to select one of several clusters, or "" if the targets belong to one
// cluster. It considers the targets that the Prometheus server scraped in the 10 minutes before `at`.
func (s *Source) Ambiguous(ctx context.Context, at time.Time) (clusters string, err error) {
	if s.ours {
		return "", nil
	}
	found, err := s.ups(ctx, at, lookBack)
	if err != nil {
		return "", err
	}
	if err := cmp.Or(current(found, at), oneCluster(found)); err != nil {
		return err.Error(), nil
	}
	return "", nil
}

// URL returns the URL of the Prometheus server without password.
func (s *Source) URL() string { return s.url }

// Targets returns the targets, sorted by job and instance.
func (s *Source) Targets() []Target { return s.targets }

// Jobs returns the component kinds that have at least one target, sorted.
func (s *Source) Jobs() []string {
	all := map[string]bool{}
	for _, t := range s.targets {
		all[t.Job] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// Interval returns the longest scrape interval of all targets.
func (s *Source) Interval() time.Duration {
	longest := time.Duration(0)
	for _, t := range s.targets {
		longest = max(longest, t.Interval)
	}
	return longest
}

// Ahead returns the time by which the Prometheus server's clock is ahead of this machine's clock. It may be negative.
func (s *Source) Ahead() time.Duration { return time.Duration(s.ahead) * time.Millisecond }

// now returns the current time by the Prometheus server's clock.
func (s *Source) now(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	v, _, err := s.api.Query(ctx, "time()", time.Time{})
	if err != nil {
		return time.Time{}, err
	}
	scalar, ok := v.(*model.Scalar)
	if !ok {
		return time.Time{}, fmt.Errorf("time() returned a %s", v.Type())
	}
	return scalar.Timestamp.Time(), nil
}

// history holds the scrapes of one target, from one series of the metric up.
type history struct {
	labels model.Metric
	ticks  []tick
}

// ups returns the scrapes of all targets that have one of the Source's jobs, in the window that ends at `to`.
func (s *Source) ups(ctx context.Context, to time.Time, window time.Duration) (map[key][]history, error) {
	var jobs []string
	for theirs := range s.jobs {
		jobs = append(jobs, regexp.QuoteMeta(theirs))
	}
	slices.Sort(jobs)
	matrix, err := s.samples(ctx, to, window,
		archive.Equal(model.MetricNameLabel, "up"), labels.MustNewMatcher(labels.MatchRegexp, "job", strings.Join(jobs, "|")))
	found := map[key][]history{}
	for _, series := range matrix {
		k := key{string(series.Metric["job"]), string(series.Metric["instance"])}
		h := history{labels: series.Metric}
		for _, p := range series.Values {
			h.ticks = append(h.ticks, tick{at: int64(p.Timestamp), up: p.Value == 1})
		}
		found[k] = append(found[k], h)
	}
	return found, err
}

// samples returns the samples of the series that satisfy all matchers, in the window that ends at `to`. The window
// includes its end but not its start.
func (s *Source) samples(ctx context.Context, to time.Time, window time.Duration, matchers ...*labels.Matcher) (model.Matrix, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	expr := fmt.Sprintf("%s[%s]", s.selector(matchers...), model.Duration(window))
	v, warnings, err := s.api.Query(ctx, expr, to)
	if err != nil {
		return nil, err
	}
	return matrixOf(v, warnings)
}

// matrixOf returns the series in the response to a query. It removes series without float values: native histograms,
// and empty series that some servers return.
func matrixOf(v model.Value, warnings v1.Warnings) (model.Matrix, error) {
	if err := checkComplete(warnings); err != nil {
		return nil, err
	}
	matrix, ok := v.(model.Matrix)
	if !ok {
		return nil, fmt.Errorf("the query returned a %s, not a matrix", v.Type())
	}
	return slices.DeleteFunc(matrix, func(s *model.SampleStream) bool { return s == nil || len(s.Values) == 0 }), nil
}

// incomplete is the error for a response that lacks data, such as a response of Thanos while a store is down. Its text
// is the server's warning.
type incomplete string

func (e incomplete) Error() string {
	return fmt.Sprintf("the response is incomplete: %s (repair the store behind it, or exclude it with --prometheus-match)", string(e))
}

// checkComplete converts a warning to an error, unless the warning is about the PromQL itself.
func checkComplete(warnings v1.Warnings) error {
	for _, w := range warnings {
		if !strings.HasPrefix(w, "PromQL info:") && !strings.HasPrefix(w, "PromQL warning:") {
			return incomplete(strings.Join(strings.Fields(w), " "))
		}
	}
	return nil
}

// current removes from `found` the targets that are no longer scraped. It returns an error if two targets have the same
// job and instance at the same time, because they belong to two replicas or clusters, and the user must select one.
func current(found map[key][]history, now time.Time) error {
	for _, k := range sortedKeys(found) {
		all := slices.DeleteFunc(found[k], func(h history) bool {
			last := h.ticks[len(h.ticks)-1].at
			return now.UnixMilli()-last > 3*interval(h.ticks).Milliseconds()
		})
		if found[k] = all; len(all) == 0 {
			delete(found, k)
		}
		for i, a := range all {
			for _, b := range all[i+1:] {
				if overlap(a, b) {
					return fmt.Errorf("%s of job %s exists %d times: %s (select one with --prometheus-match)",
						k.instance, k.job, len(all), differences(a.labels, b.labels))
				}
			}
		}
	}
	return nil
}

// overlap reports whether two histories overlap by more than two scrape intervals. A shorter overlap is normal when one
// pod replaces another.
func overlap(a, b history) bool {
	begin := max(a.ticks[0].at, b.ticks[0].at)
	end := min(a.ticks[len(a.ticks)-1].at, b.ticks[len(b.ticks)-1].at)
	return end-begin > 2*max(interval(a.ticks), interval(b.ticks)).Milliseconds()
}

// clusterLabel is the label that by convention names the cluster of a series, for example in Thanos and Mimir.
const clusterLabel = "cluster"

// oneCluster returns an error if the targets belong to several clusters. The user must then select one.
func oneCluster(found map[key][]history) error {
	all := map[string]bool{}
	for _, histories := range found {
		for _, h := range histories {
			if name := h.labels[clusterLabel]; name != "" {
				all[fmt.Sprintf("%s=%q", clusterLabel, string(name))] = true
			}
		}
	}
	if len(all) < 2 {
		return nil
	}
	return fmt.Errorf("this Prometheus server has %d clusters: %s (select one with --prometheus-match)", len(all), strings.Join(slices.Sorted(maps.Keys(all)), ", "))
}

// differences returns the labels in which two sets differ, such as `cluster="a" and cluster="b"`.
func differences(a, b model.Metric) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if a[name] != b[name] {
			parts = append(parts, fmt.Sprintf("%s=%q and %s=%q", name, string(a[name]), name, string(b[name])))
		}
	}
	if len(parts) == 0 {
		return "one of them has an additional label"
	}
	return strings.Join(parts, ", ")
}

// name converts the found targets to Targets. It makes the instance of each target unique, because gates identify a
// target by its instance.
func (s *Source) name(found map[key][]history) []Target {
	shared := map[string]int{}
	for k := range found {
		shared[k.instance]++
	}
	var all []Target
	for _, k := range sortedKeys(found) {
		all = append(all, s.target(k, found[k], shared[k.instance] > 1))
	}
	slices.SortFunc(all, func(a, b Target) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Instance, b.Instance))
	})
	return all
}

func (s *Source) target(k key, found []history, taken bool) Target {
	t := Target{Job: s.jobs[k.job], Instance: k.instance, key: k, Interval: interval(merged(found))}
	if taken {
		t.Instance = t.Job + "/" + k.instance
	}
	return t
}

// interval returns the median time between scrapes.
func interval(ticks []tick) time.Duration {
	var gaps []int64
	for i := 1; i < len(ticks); i++ {
		gaps = append(gaps, ticks[i].at-ticks[i-1].at)
	}
	if len(gaps) == 0 {
		return usualInterval
	}
	slices.Sort(gaps)
	return time.Duration(gaps[len(gaps)/2]) * time.Millisecond
}

// theirs returns the job names that the Prometheus server uses for the cluster.
func (s *Source) theirs(ctx context.Context) (names []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	jobs, _, err := s.api.LabelValues(ctx, model.JobLabel, []string{s.selector(archive.Equal(model.MetricNameLabel, "up"))}, time.Time{}, time.Time{})
	for _, j := range jobs {
		names = append(names, string(j))
	}
	return names, err
}

// NameJobs decides which job names the Prometheus server uses. By default, these are the names of
// kube-prometheus-stack. Stormglass's name for a job replaces the default if the server has only this name, as with
// `loadgen observe`. Names that the user gave do not change. NameJobs returns an error if the Prometheus server does
// not answer in time.
func (s *Source) NameJobs(ctx context.Context) error {
	if s.ours {
		return nil
	}
	there, err := s.theirs(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return explain(err, askTimeout)
	}
	for usual, ours := range maps.Clone(s.jobs) {
		if _, named := s.named[ours]; !named && slices.Contains(there, ours) && !slices.Contains(there, usual) {
			delete(s.jobs, usual)
			s.jobs[ours] = ours
		}
	}
	return nil
}

// Scrapes reports whether the Prometheus server scrapes at least one of the Source's jobs.
func (s *Source) Scrapes(ctx context.Context) bool {
	names, _ := s.theirs(ctx) // the caller has an error of the Prometheus server already
	return slices.ContainsFunc(names, func(name string) bool { _, ours := s.jobs[name]; return ours })
}

// FoundNone returns the error for a Prometheus server without matching targets. The error lists the jobs of the
// Prometheus server.
func (s *Source) FoundNone(ctx context.Context) error {
	has := "it has no matching jobs"
	if names, _ := s.theirs(ctx); len(names) > 0 {
		has = "its jobs are " + strings.Join(names, ", ")
	}
	return fmt.Errorf("it scrapes no target whose job is one of %s; %s (to set the name of a job, add --prometheus-job kube-apiserver=NAME)",
		strings.Join(slices.Sorted(maps.Keys(s.jobs)), ", "), has)
}

// explain converts an error of a Prometheus query to one line with a hint.
func explain(err error, limit time.Duration) error {
	var lacks incomplete
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no response within %s (does a firewall or VPN block the connection?)", limit)
	case errors.As(err, &lacks):
		return lacks
	}
	return fmt.Errorf("%s (set --prometheus to the URL of Grafana's data source)", oneLine(err))
}

func sortedKeys[V any](m map[key]V) []key {
	return slices.SortedFunc(maps.Keys(m), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.instance, b.instance))
	})
}
