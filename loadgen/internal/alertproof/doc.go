// Package alertproof holds the proofs of the alerts: for each a scenario that does
// what must fire it, and the judgement of a run of that. The judgement is pure:
// it takes what a run left behind, evaluates all shipped rules over it
// (package alerting), and says of each whether it fired when it had to, how long
// after its cause, whether it resolved, and whether any other was heard that
// neither was asked for nor follows from the fault.
//
// # What is asserted of a run
//
//   - A rule that is expected was neither firing nor pending when its cause
//     began, fired at most 1.5 times its floor after it (alerts.Alert.Floor), and
//     resolved: in the run, or within 75 minutes of calm after it, in which every
//     scrape says what the last one did. The latter is for rules that look back
//     an hour.
//   - A rule that is allowed follows from the fault, and may fire; why is said.
//   - Every other rule was silent all the time.
//   - The run is one: all phases came to their end, no fault was missed, no
//     unexpected exit, the generator not saturated (but where that is the
//     fault). Else nothing is proven, which is no data.
package alertproof
