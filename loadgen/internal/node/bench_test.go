package node

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Benchmarks run against the stub in a separate process, so that they measure only this process: its CPU seconds, heap
// and stacks.

// stubVariable makes this test binary a stub.
const stubVariable = "STORMGLASS_NODE_STUB"

// stubAddress is the address that a stub in a separate process prints.
type stubAddress struct {
	Host   string
	CA     []byte
	NodeCA control.KeyPair
}

// askBytes is sent to a stub in a separate process, which then prints how many bytes its connections carried.
const askBytes = "bytes"

// TestStubProcess runs the stub if this process was started as one. It ends with its standard input. An input line with
// a node's name binds a pod to that node.
func TestStubProcess(t *testing.T) {
	if os.Getenv(stubVariable) == "" {
		return
	}
	s := newStub(t)
	s.forgetful = true
	out := json.NewEncoder(os.Stdout)
	must(t, out.Encode(stubAddress{s.server.URL, s.config().CAData, s.ca}))
	lines := bufio.NewScanner(os.Stdin)
	for n := 0; lines.Scan(); n++ {
		if lines.Text() == askBytes {
			must(t, out.Encode(s.traffic.Received.Load()+s.traffic.Sent.Load()))
			continue
		}
		s.bind(lines.Text(), fmt.Sprintf("pod-%d", n), withToken)
	}
	must(t, lines.Err())
	s.server.CloseClientConnections()
}

// stubChild is a stub process. A node name written to it, one per line, binds a pod.
type stubChild struct {
	io.Writer
	stubAddress
	b   *testing.B
	out *bufio.Reader
}

// bytes returns how many bytes its connections carried so far.
func (c *stubChild) bytes() (n float64) {
	_, err := io.WriteString(c, askBytes+"\n")
	must(c.b, err)
	line, err := c.out.ReadBytes('\n')
	must(c.b, err)
	must(c.b, json.Unmarshal(line, &n))
	return n
}

// stubProcess starts a stub process.
func stubProcess(b *testing.B) *stubChild {
	cmd := exec.Command(os.Args[0], "-test.run=^TestStubProcess$")
	cmd.Env = append(os.Environ(), stubVariable+"=1")
	in, err := cmd.StdinPipe()
	must(b, err)
	out, err := cmd.StdoutPipe()
	must(b, err)
	cmd.Stderr = os.Stderr
	must(b, cmd.Start())
	b.Cleanup(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	})
	c := &stubChild{Writer: in, b: b, out: bufio.NewReader(out)}
	line, err := c.out.ReadBytes('\n')
	must(b, err)
	must(b, json.Unmarshal(bytes.TrimSpace(line), &c.stubAddress))
	return c
}

// benchmarkFleet returns a started fleet, and what one node of it costs in bytes.
func benchmarkFleet(b *testing.B, fidelity string, nodes int) (*Fleet, *stubChild, float64) {
	a := stubProcess(b)
	config := &rest.Config{Host: a.Host, TLSClientConfig: rest.TLSClientConfig{CAData: a.CA}}
	ids := NewShared(config)
	watches := 2
	if fidelity != Shared {
		watches = 6 * nodes
		var err error
		ids, err = NewSigner(config, a.NodeCA)
		must(b, err)
	}
	before := memory()
	f, err := New(Config{
		Spec: scenario.Nodes{
			Count: nodes, Fidelity: fidelity, Zones: 3, CPU: "8", Memory: "32Gi", Pods: 60, LeaseRenew: scenario.Duration(10 * time.Second),
			StatusReport: scenario.Duration(5 * time.Minute), RegisterRate: scenario.Rate(max(200, nodes/40)),
		},
		Identities: ids, NamePrefix: "sg-", Seed: 1, Log: b.Logf,
	})
	must(b, err)
	b.Cleanup(func() { f.Stop(b.Context()) })
	must(b, f.Start(b.Context()))
	eventually(b, "all is watched", func() bool { return f.Live().Watches == watches })
	return f, a, float64(memory()-before) / float64(nodes)
}

// BenchmarkIdleNodes measures the cost of idle nodes. An iteration is one second of all nodes; use -benchtime=20x or
// more. Each node renews its Lease every 10 s. Bytes are counted on the wire, to and from the stub.
func BenchmarkIdleNodes(b *testing.B) {
	for _, fidelity := range []string{Kubelet, Lean, Shared} {
		sizes := []int{500, 5000, 10000}
		if fidelity == Shared { // others take a descriptor for each node
			sizes = append(sizes, 20000)
		}
		for _, nodes := range sizes {
			b.Run(fmt.Sprintf("%s-%d", fidelity, nodes), func(b *testing.B) {
				f, child, bytes := benchmarkFleet(b, fidelity, nodes)
				seen, used, carried := f.Results(), cpuSeconds(), child.bytes()
				tick := time.NewTicker(time.Second)
				defer tick.Stop()
				for b.Loop() {
					<-tick.C
				}
				used = cpuSeconds() - used
				now := f.Results()
				if n := now.MissedByGenerator - seen.MissedByGenerator; n > 0 {
					b.Errorf("the generator missed %d renewals", n)
				}
				b.ReportMetric(100*used/b.Elapsed().Seconds()*1000/float64(nodes), "%core/1000nodes")
				b.ReportMetric(1e6*used/float64(max(now.Heartbeats-seen.Heartbeats, 1)), "cpu-us/renewal")
				b.ReportMetric(bytes/1e3, "KB/node")
				b.ReportMetric((child.bytes()-carried)/b.Elapsed().Seconds()/float64(nodes), "B/node/s")
				b.ReportMetric(resident(b)/1e6, "rss-MB")
				b.ReportMetric(descriptors(b), "descriptors")
				b.ReportMetric(0, "ns/op") // a second, by definition
			})
		}
	}
}

// BenchmarkPodStart measures the cost of taking pods from their binding to Ready, with all requests of a kubelet: an
// iteration is one pod for each of 500 nodes.
func BenchmarkPodStart(b *testing.B) {
	const nodes = 500
	for _, fidelity := range []string{Kubelet, Lean, Shared} {
		b.Run(fidelity, func(b *testing.B) {
			f, pods, _ := benchmarkFleet(b, fidelity, nodes)
			lines := strings.Join(f.Names(), "\n") + "\n"
			used, n := cpuSeconds(), 0
			for b.Loop() {
				_, err := io.WriteString(pods, lines)
				must(b, err)
				n += nodes
				eventually(b, "all run", func() bool { return f.Live().PodsRunning == n })
			}
			b.ReportMetric(1000*(cpuSeconds()-used)/float64(n), "cpu-s/1000pods")
		})
	}
}

// BenchmarkRenewedLease measures the renewal's own work, without sending it.
func BenchmarkRenewedLease(b *testing.B) {
	now := time.Now()
	lease := sampleLease(b)
	b.ReportAllocs()
	for b.Loop() {
		raw, err := renewedLease(lease, 40, now)
		must(b, err)
		wrap(leaseVersion, "Lease", raw)
	}
}

func cpuSeconds() float64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// resident returns the memory of this process that is in use, in bytes.
func resident(b *testing.B) float64 {
	p, err := procfs.Self()
	must(b, err)
	s, err := p.Stat()
	must(b, err)
	return float64(s.ResidentMemory())
}

// descriptors returns how many files and sockets this process has open.
func descriptors(b *testing.B) float64 {
	p, err := procfs.Self()
	must(b, err)
	n, err := p.FileDescriptorsLen()
	must(b, err)
	return float64(n)
}

// memory returns the bytes in use after a collection: heap and stacks.
func memory() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
