package bench

import (
	"fmt"
	"io"
	"net"
	"net/rpc"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/internal/stubapi"
)

// childEnv is the environment variable that makes ChildMain run a stub.
const childEnv = "STORMGLASS_STUBAPI_CHILD"

// Child is a stub in a separate process, so that its CPU time is not counted as the client's. The standard input of the child is
// a pipe from this process. The child ends when the pipe closes.
type Child struct {
	cmd    *exec.Cmd
	client *rpc.Client
	config *rest.Config
}

// ChildMain runs a stub and then exits if StartChild has started this process; otherwise it returns. TestMain calls it
// first.
func ChildMain() {
	if os.Getenv(childEnv) == "" {
		return
	}
	// With one thread, the stub gathers more responses into each write.
	runtime.GOMAXPROCS(1)
	server := rpc.NewServer()
	if err := server.RegisterName("Stub", &childStub{}); err != nil {
		fmt.Fprintln(os.Stderr, "stub API server:", err)
		os.Exit(1)
	}
	server.ServeConn(stdio{os.Stdin, os.Stdout})
	os.Exit(0)
}

// stdio makes two pipes usable as one connection.
type stdio struct {
	io.Reader
	io.WriteCloser
}

// StartChild starts the program of this process again. ChildMain then runs a stub in the new process.
func StartChild() (*Child, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), childEnv+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the stub API server: %w", err)
	}
	c := &Child{cmd: cmd, client: rpc.NewClient(stdio{out, in})}
	var at ChildAddress
	if err := c.client.Call("Stub.Start", struct{}{}, &at); err != nil {
		c.Close()
		return nil, fmt.Errorf("start the stub API server: %w", err)
	}
	c.config = &rest.Config{Host: "https://" + at.Addr, TLSClientConfig: rest.TLSClientConfig{CAData: at.CA}, QPS: -1}
	return c, nil
}

// Config returns a client configuration for the stub in the child.
func (c *Child) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Fill calls Server.Fill in the child.
func (c *Child) Fill(f ChildFill) error { return c.client.Call("Stub.Fill", f, &struct{}{}) }

// Storm makes the child write to ConfigMaps, and returns after the last write.
func (c *Child) Storm(s ChildStorm) error { return c.client.Call("Stub.Storm", s, &struct{}{}) }

// Cost returns the CPU time of the child and the amount of data that it has served so far.
func (c *Child) Cost() (cost ChildCost, err error) {
	err = c.client.Call("Stub.Cost", struct{}{}, &cost)
	return cost, err
}

// Close ends the child and waits until it has ended.
func (c *Child) Close() {
	_ = c.client.Close() // closes the child's standard input
	_ = c.cmd.Wait()
}

// The messages between the parent and the child.
type (
	// ChildAddress is the address at which the child serves.
	ChildAddress struct {
		Addr string
		CA   []byte
	}
	// ChildFill holds the arguments of Server.Fill.
	ChildFill struct {
		Namespace, Prefix string
		N, Size           int
		Labels            map[string]string
	}
	// ChildStorm describes a storm: the number of writes and their rate per second. The writes go to the ConfigMaps PREFIX-0 to
	// PREFIX-(Objects-1) in turn.
	ChildStorm struct {
		Namespace, Prefix string
		Objects, Writes   int
		PerSecond         float64
	}
	// ChildCost is the CPU time of the child and the amount of data that it has served.
	ChildCost struct {
		CPU              time.Duration
		Requests, Events int64
		Received, Sent   int64 // bytes, including TLS
		Watches          int   // open watches
	}
)

// childStub serves the calls of Child. It runs in the child process.
type childStub struct {
	server  *stubapi.Server
	traffic stubapi.Traffic
}

// Start starts the stub and returns its address.
func (s *childStub) Start(_ struct{}, at *ChildAddress) (err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if s.server, err = stubapi.Start(stubapi.Options{NoRecord: true, Listener: s.traffic.Count(l)}); err == nil {
		*at = ChildAddress{s.server.Addr(), s.server.Config().CAData}
	}
	return err
}

// Fill creates ConfigMaps by Server.Fill.
func (s *childStub) Fill(f ChildFill, _ *struct{}) error {
	s.server.Fill(f.Namespace, f.Prefix, f.N, f.Size, f.Labels)
	return nil
}

// Storm sends the writes of a storm by Server.Touch, at constant intervals, and returns after the last write.
func (s *childStub) Storm(c ChildStorm, _ *struct{}) error {
	start := time.Now()
	for i := range c.Writes {
		time.Sleep(time.Until(start.Add(time.Duration(float64(i) / c.PerSecond * float64(time.Second)))))
		s.server.Touch(c.Namespace, fmt.Sprintf("%s-%d", c.Prefix, i%c.Objects))
	}
	return nil
}

// Cost reads the CPU time of this process and the counters of the stub.
func (s *childStub) Cost(_ struct{}, cost *ChildCost) error {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return err
	}
	cost.Requests, cost.Events = s.server.Counts()
	cost.CPU = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	cost.Watches = s.server.OpenWatches()
	cost.Received, cost.Sent = s.traffic.Received.Load(), s.traffic.Sent.Load()
	return nil
}

// A child serves, and ends with its parent's pipe.
func TestChild(t *testing.T) {
	c, err := StartChild()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Fill(ChildFill{Namespace: "storm", Prefix: "x", N: 3, Size: 100}); err != nil {
		t.Fatal(err)
	}
	k, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	w, err := k.CoreV1().ConfigMaps("storm").Watch(t.Context(), metav1.ListOptions{ResourceVersion: "103"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if err := c.Storm(ChildStorm{Namespace: "storm", Prefix: "x", Objects: 3, Writes: 6, PerSecond: 1000}); err != nil {
		t.Fatal(err)
	}
	for range 6 {
		if e := <-w.ResultChan(); e.Type != "MODIFIED" {
			t.Errorf("got %+v", e)
		}
	}
	cost, err := c.Cost()
	if err != nil || cost.Events != 6 || cost.Requests != 1 || cost.CPU <= 0 || cost.Watches != 1 {
		t.Errorf("cost %+v, %v", cost, err)
	}
}
