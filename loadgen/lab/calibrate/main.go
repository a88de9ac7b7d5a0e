// Calibrate compares the requests of a simulated node with the requests of a real kubelet:
//
//	make calibrate-node
//
// It starts a bundled control plane, containerd with a kubelet in a separate directory, and a simulated node. It creates the
// same pods on both nodes. From the API server's audit log, it counts the requests of each node by verb and resource, and prints
// a table. It fails if any real and simulated counts differ by more than 5%. It needs root, containerd, runc and the CNI plugins,
// and reports what is missing before it starts anything.
//
// With --lives it instead compares the lifecycles of pods that crash, fail their probes or have no image: the sequence of their
// statuses, their Events and their requests.
//
// Exit codes: 0 if all counts are within 5%, or all lifecycles are the same; 1 if not; 2 for bad usage; 4 if the environment failed.
// With --json it does not judge the counts.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/realnode"
)

func main() { os.Exit(run(os.Args[1:])) }

type options struct {
	kubelet, kubeProxy, controlplane, only string
	pods, rounds, registrations            int
	every, idle                            time.Duration
	seed                                   uint64
	json, keep, check, lives               bool
}

func run(args []string) int {
	var o options
	flags := flag.NewFlagSet("calibrate", flag.ContinueOnError)
	flags.StringVar(&o.kubelet, "kubelet", "bin/kubelet", "the kubelet `program`")
	flags.StringVar(&o.kubeProxy, "kube-proxy", "bin/kube-proxy", "the kube-proxy `program`")
	flags.StringVar(&o.controlplane, "controlplane", "bin/controlplane", "the controlplane `program`")
	flags.IntVar(&o.pods, "pods", 30, "pods of each kind on each node at a time, of a Job a third")
	flags.IntVar(&o.rounds, "rounds", 2, "how `often` pods of each kind start and end")
	flags.IntVar(&o.registrations, "registrations", 20, "how `many` nodes of each kind register; two stay")
	flags.DurationVar(&o.every, "every", 500*time.Millisecond, "mean `time` from a pod to the next")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of the times between pods")
	flags.DurationVar(&o.idle, "idle", time.Minute, "`time` for which both nodes are watched idle")
	flags.StringVar(&o.only, "only", "", "compare only the kinds of pods whose names begin with this `prefix`, and skip the idle time")
	flags.BoolVar(&o.lives, "lives", false, "compare lives of pods: their statuses, Events and requests")
	flags.BoolVar(&o.json, "json", false, "print the rows as JSON")
	flags.BoolVar(&o.keep, "keep", false, "keep the directory, with logs and the audit log with bodies")
	flags.BoolVar(&o.check, "check", false, "only say what this machine lacks")
	if err := flags.Parse(args); err != nil {
		return exitcode.Usage
	}
	if o.pods < 1 || o.rounds < 1 || o.registrations < 1 || o.every <= 0 || o.idle <= 0 {
		fmt.Fprintln(os.Stderr, "calibrate: --pods, --rounds, --registrations, --every and --idle must be above 0")
		return exitcode.Usage
	}
	missing, _ := realnode.Lacks("iptables")
	if len(missing) > 0 {
		fmt.Fprintf(os.Stderr, "calibrate: this machine lacks\n  %s\n", strings.Join(missing, "\n  "))
		return exitcode.Environment
	}
	if o.check {
		return exitcode.Pass
	}
	for _, program := range []string{o.kubelet, o.kubeProxy, o.controlplane} {
		if _, err := os.Stat(program); err != nil {
			fmt.Fprintf(os.Stderr, "calibrate: %v (make calibrate-node builds it)\n", err)
			return exitcode.Usage
		}
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	code, err := calibrate(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "calibrate:", err)
		return exitcode.Environment
	}
	return code
}

func calibrate(ctx context.Context, o options) (code int, err error) {
	dir, err := os.MkdirTemp("", "calibrate-")
	if err != nil {
		return 0, err
	}
	l := &lab{dir: dir, rng: rand.New(rand.NewPCG(o.seed, 0))}
	if o.keep {
		fmt.Fprintln(os.Stderr, "directory:", dir)
	} else {
		l.undo = append(l.undo, func() { _ = os.RemoveAll(dir) })
	}
	defer l.close()
	say("starting the control plane")
	level := "Metadata"
	if o.keep {
		level = "RequestResponse"
	}
	if err := l.startPlane(ctx, o.controlplane, level); err != nil {
		return 0, err
	}
	say("starting containerd, a kubelet and a simulated node")
	if l.node, err = l.startNode(ctx, "node", realnode.Options{Kubelet: o.kubelet}); err != nil {
		return 0, err
	}
	log, err := openLog(l.audit)
	if err != nil {
		return 0, err
	}
	defer log.file.Close()
	if o.lives {
		return l.compareLives(ctx, o, log)
	}
	rows, err := l.countRequests(ctx, o, log)
	if err != nil {
		return 0, err
	}
	return report(rows, o.json)
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func report(rows []row, asJSON bool) (code int, err error) {
	if asJSON {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		return exitcode.Pass, encoder.Encode(rows)
	}
	if off := print(os.Stdout, rows); off > 0 {
		fmt.Printf("%d of %d rows differ by more than 5%%\n", off, len(rows))
		return exitcode.Fail, nil
	}
	return exitcode.Pass, nil
}

// countRequests counts the requests of both nodes while they register, while they are idle, and while they run pods
// of each kind.
func (l *lab) countRequests(ctx context.Context, o options, log *reader) (rows []row, err error) {
	c, err := l.register(ctx, o, log)
	if err != nil {
		return nil, err
	}
	rows = append(rows, compareNodes("registration", c, o.registrations)...)
	if err := l.references(ctx); err != nil {
		return nil, err
	}
	if o.only == "" {
		say("idle for %s", o.idle)
		c, err := l.countFor(ctx, log, o.idle)
		if err != nil {
			return nil, err
		}
		rows = append(rows, compareNodes("idle "+o.idle.String(), c, 1)...)
	}
	for _, c := range cases() {
		if !strings.HasPrefix(c.name, o.only) {
			continue
		}
		say("%s", c.name)
		start, end := both(), both()
		pods := c.pods(o)
		for range o.rounds {
			err := l.count(ctx, log, start, func() error {
				if err := l.create(ctx, c, o); err != nil {
					return err
				}
				return l.await(ctx, c, pods)
			}, renewal, nodeReport)
			if err != nil {
				return nil, err
			}
			if err := l.count(ctx, log, end, func() error { return l.remove(ctx, o) }, renewal, nodeReport); err != nil {
				return nil, err
			}
		}
		rows = append(rows, compareNodes(c.name+", start", start, pods*o.rounds)...)
		rows = append(rows, compareNodes(c.name+", end", end, pods*o.rounds)...)
	}
	return rows, nil
}

func user(node string) string { return "system:node:" + node }

func both() map[string]counts {
	return map[string]counts{user(realNode): {}, user(simulatedNode): {}, proxyOf(realNode): {}, proxyOf(simulatedNode): {}}
}

// compareNodes returns the rows that compare the requests of the two nodes, divided by n, the number of pods or nodes.
// If kube-proxies sent requests, it adds rows for them.
func compareNodes(stage string, c map[string]counts, n int) []row {
	rows := compare(stage, c[user(realNode)], c[user(simulatedNode)], n)
	if real, simulated := c[proxyOf(realNode)], c[proxyOf(simulatedNode)]; real.total()+simulated.total() > 0 {
		rows = append(rows, compare(stage+", kube-proxy", real, simulated, 1)...)
	}
	return rows
}

// count calls `do`, and then adds the requests of the nodes to c until both nodes are quiet. It leaves out requests
// with a key in `but`.
func (l *lab) count(ctx context.Context, log *reader, c map[string]counts, do func() error, but ...string) error {
	if err := do(); err != nil {
		return err
	}
	deadline, last := time.Now().Add(longest), time.Now()
	for time.Since(last) < quiet && time.Now().Before(deadline) {
		added, err := log.read(c, but...)
		if err != nil {
			return err
		}
		if added > 0 {
			last = time.Now()
		}
		if !apiclient.Pause(ctx, 200*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// countFor returns the requests that nodes send during the time d.
func (l *lab) countFor(ctx context.Context, log *reader, d time.Duration) (map[string]counts, error) {
	if _, err := log.read(both()); err != nil {
		return nil, err
	}
	if !apiclient.Pause(ctx, d) {
		return nil, context.Cause(ctx)
	}
	c := both()
	_, err := log.read(c)
	return c, err
}
