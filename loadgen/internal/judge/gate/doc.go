// Package gate judges a run: each gate passes, fails, or has no data, which is never a
// pass. It reads the run's archive and measurements and nothing else: no network, no
// clock. docs/reference/objectives.md says what a gate's value is, and when it has none.
package gate
