package record

// logAbsence logs when the scrapes of the target begin to fail, and when they are back.
// Failures in between are counted: a component may be away for minutes, and a
// line for each scrape hides all others. The caller holds t.mu.
func (t *target) logAbsence(failed error, log func(format string, args ...any)) {
	switch {
	case failed != nil:
		if t.missed++; t.missed == 1 {
			log("scrapes of %s fail: %v", t.instance, failed)
		}
	case t.missed > 0:
		log("scrapes of %s are back, %d lost", t.instance, t.missed)
		t.missed = 0
	}
}
