package supervisor

import (
	"fmt"
	"strings"
	"testing"
)

func TestQuoteExplainsExit(t *testing.T) {
	info := func(n int) string { return strings.Repeat("I1122 12:00:00.000000       1 x.go:1] working\n", n) }
	var stack strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&stack, "k8s.io/kubernetes/pkg/x.f%d(...)\n\t/go/x.go:%d +0x1\n", i, i)
	}
	for _, c := range []struct{ name, log, first, last string }{
		{"a panic", "E1122 12:00:00.000000       1 options.go:205] The manifest file is empty, ignoring.\n" + info(20) + "panic: leaseDuration must be greater than renewDeadline\n\ngoroutine 1 [running]:\n" + stack.String(), "panic: leaseDuration must", "\t/go/x.go:2 +0x1"},
		{"a panic after another's, recovered", "panic: first\n" + info(3) + "panic: second [recovered]\n\tpanic: second\n\ngoroutine 7 [running]:\n", "panic: second", "goroutine 7 [running]:"},
		{"klog's fatal error", info(3) + "F1122 12:00:00.000000       1 server.go:9] no such socket\ngoroutine 1 [running]:\n" + stack.String(), "F1122 12:00:00.000000       1 server.go:9] no such socket", "\t/go/x.go:2 +0x1"},
		{"the runtime's", "fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [select]:\n" + stack.String(), "fatal error: all goroutines", "\t/go/x.go:2 +0x1"},
		{"etcd's", `{"level":"warn","msg":"slow"}` + "\n" + `{"level":"fatal","msg":"discovery failed"}` + "\n", `{"level":"fatal"`, `{"level":"fatal"`},
		{"an error and usage after it", "E1122 12:00:00.000000       1 run.go:7] \"command failed\" err=\"group no/such has not been registered\"\n" + info(30) + "bye\n", "E1122 12:00:00.000000       1 run.go:7]", "bye"},
		{"an error at the end", info(30) + "Error: unknown flag: --x\n", "Error: unknown flag: --x", "Error: unknown flag: --x"},
		{"a lease that was lost", info(9) + "E1122 12:00:00.000000       1 lease.go:5] \"Failed to update lease\" err=\"context deadline exceeded\"\n" + info(20) + "E1122 12:00:09.000000       1 server.go:9] \"leaderelection lost\"\n", "E1122 12:00:00.000000       1 lease.go:5]", "leaderelection lost"},
		{"a harmless error before it", "E1122 12:00:00.000000       1 options.go:205] The manifest file is empty, ignoring.\n" + info(20) + "E1122 12:00:09.000000       1 server.go:9] \"leaderelection lost\"\n", "E1122 12:00:09.000000       1 server.go:9]", "leaderelection lost"},
		{"no error", info(30) + "bye\n", "I1122", "bye"},
		{"one line without an end", "oh", "oh", "oh"},
		{"a long error", info(20) + "E1122 12:00:00.000000       1 lease.go:5] \"Failed\" err=\"" + strings.Repeat("x", 500) + " the cause\"\nError: leaderelection lost\n", "E1122 12:00:00.000000       1 lease.go:5] \"Failed\" err=\"" + strings.Repeat("x", 500) + " the cause\"", "leaderelection lost"},
		{"a long line", "panic: " + strings.Repeat("é", 1000), "panic: éé", "..."},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines := quote(c.log)
			if len(lines) == 0 || len(lines) > maxQuoted || !strings.HasPrefix(lines[0], c.first) || !strings.Contains(lines[len(lines)-1], c.last) {
				t.Errorf("quote returned %d lines:\n%s", len(lines), strings.Join(lines, "\n"))
			}
		})
	}
	if lines := quote("\n\n"); len(lines) != 0 {
		t.Errorf("quote of an empty log = %q, want none", lines)
	}
}
