package request

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn/h2test"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// serverVariable is the environment variable that makes the test binary a server, so that a benchmark measures only the
// client's CPU time.
const serverVariable = "STORMGLASS_REQUEST_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(serverVariable) == "" {
		os.Exit(m.Run())
	}
	answer := h2test.Respond(200, bytes.Repeat([]byte("x"), 1024))
	if os.Getenv(serverVariable) == "pieces" {
		answer = inPieces(1024)
	}
	s := h2test.New(h2test.Options{Answer: answer})
	fmt.Println(s.Addr(), base64.StdEncoding.EncodeToString(s.CA()))
	_, _ = io.Copy(io.Discard, os.Stdin) // until the benchmark ends
	s.Close()
}

// remote starts a server in a separate process; `how` selects how it responds.
func remote(b *testing.B, how string) load.Target {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serverVariable+"="+how)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	var addr, ca string
	if _, err := fmt.Fscan(out, &addr, &ca); err != nil {
		b.Fatal(err)
	}
	pem, err := base64.StdEncoding.DecodeString(ca)
	if err != nil {
		b.Fatal(err)
	}
	return load.Target{Config: &rest.Config{Host: "https://" + addr, TLSClientConfig: rest.TLSClientConfig{CAData: pem}}}
}

// BenchmarkRequests offers gets of 1 KB over TLS for a second or more and
// reports the client's CPU time and allocations for each, and its lag.
func BenchmarkRequests(b *testing.B) {
	for _, rate := range []float64{2_000, 20_000} {
		b.Run(fmt.Sprintf("%.0f per second", rate), func(b *testing.B) {
			target := remote(b, "whole")
			target.Registerer = prometheus.NewRegistry()
			measure(b, target, newGets(target), rate, 5000)
		})
	}
}

// measure sends b.N requests, or least if that is more.
func measure(b *testing.B, target load.Target, op Operation, rate float64, least int) {
	pacer, err := arrival.New("constant", rate, 1)
	if err != nil {
		b.Fatal(err)
	}
	r, err := New(target, scenario.Load{Name: "bench", Rate: scenario.Rate(rate), MaxInFlight: 10_000, Timeout: scenario.Duration(10 * time.Second)}, op, pacer)
	if err != nil {
		b.Fatal(err)
	}
	if err := r.Prepare(b.Context()); err != nil {
		b.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu := cpuTime(b)
	b.ResetTimer()
	// Run for as long as the arrivals take at the given rate.
	ctx, cancel := context.WithTimeout(b.Context(), time.Duration(float64(max(b.N, least))/rate*float64(time.Second)))
	defer cancel()
	if err := r.Run(ctx); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	runtime.ReadMemStats(&after)
	results := r.Results()[""]
	if len(results) == 0 {
		b.Fatal("nothing was offered: the machine is too busy")
	}
	got := results[0]
	if got.Succeeded != got.Sent {
		b.Fatalf("outcomes %v", got.Outcomes)
	}
	n := float64(got.Sent)
	b.ReportMetric(float64(cpuTime(b)-cpu)/n/1e3, "cpu-us/request")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/n, "allocs/request")
	b.ReportMetric(got.Lag.P50*1e6, "lag-p50-us")
	b.ReportMetric(got.Lag.P99*1e6, "lag-p99-us")
	b.ReportMetric(got.Latency.P50*1e6, "latency-p50-us")
	b.ReportMetric(got.AchievedRate, "achieved/s")
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
