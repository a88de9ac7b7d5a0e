package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/realnode"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// stamped is one version of a pod, with the time at which a watch delivered it.
type stamped struct {
	at  time.Time
	pod *corev1.Pod
}

// seenPods collects the versions of pods that a watch delivers.
type seenPods struct {
	mu   sync.Mutex
	pods map[string][]stamped
	gone map[string]bool
	err  error // reason why the watch ended
}

// watch starts a watch on the pods. The watch ends when ctx ends.
func (s *seenPods) watch(ctx context.Context, l *lab) error {
	w, err := l.client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	go func() {
		defer w.Stop()
		for e := range w.ResultChan() {
			s.mu.Lock()
			if p, ok := e.Object.(*corev1.Pod); !ok {
				s.err = apierrors.FromObject(e.Object)
			} else {
				s.pods[p.Name] = append(s.pods[p.Name], stamped{time.Now(), p})
				s.gone[p.Name] = e.Type == "DELETED"
			}
			s.mu.Unlock()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.err = errors.Join(s.err, errors.New("the watch of pods ended"))
	}()
	return nil
}

// of returns all observed versions of a pod, whether the pod was deleted, and the reason if the watch has ended.
func (s *seenPods) of(name string) (all []stamped, gone bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pods[name], s.gone[name], s.err
}

// compareLives runs all cases on the real and on the simulated nodes at the same time. It deletes each pod as soon as
// its case permits, and prints the comparison.
func (l *lab) compareLives(ctx context.Context, o options, log *reader) (code int, err error) {
	var cases []lifeCase
	var lives []scenario.PodLife
	for _, c := range lifeCases() {
		if !strings.HasPrefix(c.name, o.only) {
			continue
		}
		cases = append(cases, c)
		c.life.Name = c.name
		lives = append(lives, c.life)
	}
	if len(cases) == 0 {
		return exitcode.Usage, fmt.Errorf("no life has a name that begins with %q", o.only)
	}
	if err := l.startPairs(ctx, o.kubelet, lives); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen := &seenPods{pods: map[string][]stamped{}, gone: map[string]bool{}}
	if err := seen.watch(ctx, l); err != nil {
		return 0, err
	}
	say("%d lives", len(cases))
	pods := l.client.CoreV1().Pods(namespace)
	err = paced(ctx, len(cases), o.every, l.rng, func(i int) error {
		for _, node := range cases[i].nodes() {
			if _, err := pods.Create(ctx, cases[i].pod(node), metav1.CreateOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	unfinished := l.follow(ctx, cases, seen)
	if ctx.Err() != nil {
		return 0, unfinished
	}
	requests, err := requestsByPod(log)
	if err != nil {
		return 0, err
	}
	events, err := l.client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	off := 0
	for _, c := range cases {
		var two [2]lived
		for i, node := range c.nodes() {
			name := c.podName(node)
			all, _, _ := seen.of(name)
			two[i] = lived{statuses: linesOf(all), events: eventsOf(events.Items, name), requests: requests[name]}
		}
		off += printLife(os.Stdout, c.says, two[0], two[1])
	}
	fmt.Printf("%d of %d lives differ in a status or an Event\n", off, len(cases))
	if off > 0 {
		return exitcode.Fail, unfinished
	}
	return exitcode.Pass, unfinished
}

func (l *lab) startPairs(ctx context.Context, kubelet string, lives []scenario.PodLife) error {
	if _, err := l.node.Join(ctx, realNode); err != nil {
		return err
	}
	if _, err := l.startNode(ctx, "pressed", realnode.Options{Name: pressedReal, Kubelet: kubelet, Settings: []string{pressure}}); err != nil {
		return err
	}
	if _, err := l.startFleet(ctx, strings.TrimSuffix(simulatedNode, "0"), 2, false, lives...); err != nil {
		return err
	}
	return l.awaitReady(ctx, []string{realNode, pressedReal, simulatedNode, pressedSimulated})
}

// follow deletes each pod as soon as its case permits, and waits until all pods are gone.
func (l *lab) follow(ctx context.Context, cases []lifeCase, seen *seenPods) error {
	deleted := map[string]bool{}
	var left []string
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		left = nil
		for _, c := range cases {
			for _, node := range c.nodes() {
				name := c.podName(node)
				all, gone, err := seen.of(name)
				switch {
				case err != nil:
					return false, err
				case gone:
					continue
				case len(all) > 0 && !deleted[name] && c.until(all):
					deleted[name] = true
					if err := l.client.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
						return false, err
					}
				}
				left = append(left, name)
			}
		}
		return len(left) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the end of the pods %v (logs: %s): %w", left, l.dir, err)
	}
	return nil
}

func requestsByPod(log *reader) (map[string]counts, error) {
	all := map[string]counts{}
	err := log.each(func(e *auditv1.Event) {
		key, name := keyOf(e), podOf(e)
		if key == "" || name == "" {
			return
		}
		if all[name] == nil {
			all[name] = counts{}
		}
		all[name][key]++
	})
	return all, err
}
