// Package alerting computes which alerts would have fired over a recorded run.
// Prometheus' own code evaluates the rules (rules.Group.Eval) over the archive, with the
// clock of the recording. What rules write is kept in memory; the archive is not touched.
//
// Unlike in a Prometheus, groups are evaluated at the same moments, one after another in
// the order of their files, first at the archive's first scrape: a Prometheus gives each
// group an offset, so that an alert on a record of another group may come up to one
// interval later. A range that reaches back beyond the first scrape holds less.
package alerting
