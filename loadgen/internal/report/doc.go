// Package report tells a run to people and to programs: a summary for a
// terminal, result.json, junit.xml and report.html. A reporter is a function
// of a result to an io.Writer; none of them touches the network or a clock,
// so the same directory gives the same bytes a year later.
//
// The verdict is not made here: package gate has judged, this package shows.
// What comes from a cluster (label values, error texts) is not trusted:
// control characters never reach a terminal, and templates escape the rest.
package report
