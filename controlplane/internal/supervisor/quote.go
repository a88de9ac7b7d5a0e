package supervisor

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const (
	maxQuoted  = 8       // lines
	maxLogLine = 300     // bytes: a line of etcd's log may carry a whole stack
	quotedTail = 4 << 20 // bytes: klog writes the stacks of all goroutines after a fatal error
)

var (
	// crashLine begins what Go, klog and etcd write when a process crashes.
	crashLine = regexp.MustCompile(`^(panic: |fatal error: |F\d{4} |\{"level":"(fatal|panic|dpanic)")`)
	// errorLine is an error in the log of a process that ended in order.
	errorLine = regexp.MustCompile(`^(E\d{4} |\{"level":"error"|[Ee]rror: )`)
)

// quoteLog names the log of a process and quotes why the process ended.
func (s *Supervisor) quoteLog(i *instance) string {
	lines := quote(i.child.Tail(quotedTail))
	if len(lines) == 0 {
		return "; its log is empty"
	}
	return fmt.Sprintf("; from its log, %s:\n  %s", s.plane.Layout.Log(i.child.Name), strings.Join(lines, "\n  "))
}

// quote picks the lines of a log that say why the process ended: a crash and the
// lines after it, else the last error and the last lines, else the last lines.
func quote(log string) []string {
	var lines []string
	for line := range strings.Lines(log) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			lines = append(lines, line)
		}
	}
	if at := lastMatch(lines, crashLine); at >= 0 {
		lines = lines[at:min(len(lines), at+maxQuoted)]
	} else if at := lastMatch(lines, errorLine); at >= 0 && at < len(lines)-maxQuoted {
		lines = slices.Concat(lines[at:at+1], []string{"..."}, lines[len(lines)-maxQuoted+2:])
	} else {
		lines = lines[max(0, len(lines)-maxQuoted):]
	}
	lines = slices.Clone(lines)
	for i, line := range lines {
		if len(line) > maxLogLine {
			lines[i] = strings.ToValidUTF8(line[:maxLogLine], "") + "..."
		}
	}
	return lines
}

// lastMatch is the index of the last line that matches, or -1.
func lastMatch(lines []string, what *regexp.Regexp) int {
	for i, line := range slices.Backward(lines) {
		if what.MatchString(line) {
			return i
		}
	}
	return -1
}
