// Package alerting tells which alerts would have fired over what a run
// recorded. The rules are evaluated by Prometheus' own code (rules.Group.Eval,
// so records, for, keep_firing_for, templates and staleness are as upstream has
// them) over the archive, with the clock of the recording: a `for` of fifteen
// minutes takes milliseconds. What rules write is kept in memory and read by
// the rules after them; the archive is not touched.
//
// # What differs from a Prometheus that had watched
//
// Groups are evaluated at the same moments, one after another in the order of
// their files, first at the archive's first scrape. A Prometheus gives each
// group an offset of its own, so that there an alert on a record of another
// group may come up to one interval later. Nothing is known of the time before
// the first scrape: a range that reaches back further holds less.
package alerting
