// Package alertproof holds the proofs of the alerts, each a scenario that must fire some
// of them, and judges a run of one. All shipped rules are evaluated over the run:
//
//   - A rule that is expected was neither firing nor pending when its cause began, fired
//     at most 1.5 times its floor after it (alerts.Alert.Floor), and resolved: in the
//     run, or within 75 minutes after it in which every scrape repeats the last one. The
//     latter is for rules that look back an hour.
//   - A rule that follows from the fault may fire.
//   - Every other rule was silent all the time.
//
// A run that was cut short, missed a fault, had an unexpected exit or a saturated
// generator (unless that is the fault) proves nothing, which is no data.
package alertproof
