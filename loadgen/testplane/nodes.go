package testplane

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const readyPoll = 100 * time.Millisecond

func (p *Plane) startNodes() (stop func(), err error) {
	if p.Nodes == 0 {
		return func() {}, nil
	}
	s, err := scenario.Parse("Plane.Nodes", fmt.Appendf(nil,
		"{apiVersion: %s, kind: %s, name: testplane, nodes: {count: %d}, phases: [{name: tests, for: 1s}]}", scenario.APIVersion, scenario.Kind, p.Nodes), nil)
	if err != nil {
		return nil, err
	}
	hurry := make(chan struct{})
	close(hurry) // do not remove the nodes: Main removes the whole plane
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := run.Nodes(ctx, run.Options{Scenario: s, Plane: p.running.Cluster().Dir, Progress: silent{}, Hurry: hurry})
		ended <- err
	}()
	stop = func() {
		cancel()
		<-ended
	}
	if err := p.awaitNodes(ctx, ended); err != nil {
		cancel()
		return nil, fmt.Errorf("start %d simulated nodes: %w", p.Nodes, err)
	}
	return stop, nil
}

// awaitNodes returns when all nodes are Ready. If the simulation of the nodes ends earlier, it returns the error that it
// receives from ended.
func (p *Plane) awaitNodes(ctx context.Context, ended chan error) error {
	cfg, err := p.admin()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, readyPoll, startWithin, true, func(ctx context.Context) (bool, error) {
		select {
		case err := <-ended:
			return false, fmt.Errorf("the nodes ended: %w", err)
		default:
		}
		list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		ready := 0
		for i := range list.Items {
			if slices.ContainsFunc(list.Items[i].Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
			}) {
				ready++
			}
		}
		return ready >= p.Nodes, nil
	})
}

type silent struct{}

func (silent) Step(string)       {}
func (silent) Live(run.Snapshot) {}
