package loadgen_test

import (
	"context"
	"fmt"
	"log"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// rotation is an action that creates ten Secrets.
type rotation struct{}

func (rotation) Do(ctx context.Context, cfg *rest.Config, namespace string, labels map[string]string) error {
	client, err := v1.NewForConfig(cfg)
	if err != nil {
		return err
	}
	for i := range 10 {
		key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("key-%d", i), Labels: labels}}
		if _, err := client.Secrets(namespace).Create(ctx, key, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// secrets is a measurement that counts the Secrets at the end of a phase.
type secrets struct{ list v1.SecretInterface }

func (s *secrets) Prepare(_ context.Context, cfg *rest.Config, namespace string, _ map[string]string) error {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	s.list = client.CoreV1().Secrets(namespace)
	return nil
}

func (s *secrets) Start(context.Context, string) error { return nil }

func (s *secrets) Stop(ctx context.Context) ([]loadgen.Figure, error) {
	all, err := s.list.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return []loadgen.Figure{{Name: "stored", Value: float64(len(all.Items)), Unit: "count"}}, nil
}

// pings is a load in which each request gets the API server's version.
type pings struct{ client rest.Interface }

func (p *pings) Prepare(_ context.Context, cfg *rest.Config, _ string, _ map[string]string) error {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	p.client = client.RESTClient()
	return nil
}

func (p *pings) Do(ctx context.Context) error {
	return p.client.Get().AbsPath("/version").Do(ctx).Error()
}

// onPlane runs a scenario on a running control plane.
func onPlane(text string, o loadgen.Options) result.Result {
	s, err := scenario.Parse("own.yaml", []byte("apiVersion: stormglass/v1alpha1\nkind: Scenario\nname: own\n"+text), nil)
	if err != nil {
		log.Fatal(err)
	}
	if o.Out, err = os.MkdirTemp("", "example-"); err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(o.Out)
	o.Scenario, o.Progress = s, lines{}
	o.Plane = os.Getenv("STORMGLASS_DIR")
	dir, err := loadgen.Run(context.Background(), o)
	if err != nil {
		log.Fatal(err)
	}
	res, err := loadgen.Judge(context.Background(), dir)
	if err != nil {
		log.Fatal(err)
	}
	return res
}

// A scenario performs a custom action of the program, and a gate judges a figure of a custom
// measurement.
func ExampleMeasurement() {
	res := onPlane(`
phases:
  - {name: rotate, for: 1s, actions: [{kind: custom, name: rotate-keys}]}
gates:
  - {name: stored, objective: custom-figure, figure: secrets/stored, min: 10}
`, loadgen.Options{
		Actions:      map[string]loadgen.Action{"rotate-keys": rotation{}},
		Measurements: map[string]loadgen.Measurement{"secrets": &secrets{}},
	})
	for _, f := range res.Measurements.Phases[0].Custom[0].Figures {
		fmt.Println(f.Name, f.Value, f.Unit)
	}
	fmt.Println("gate", res.Gates[0].Name, res.Gates[0].Verdict)
	// Output:
	// stored 10 count
	// gate stored pass
}

// An action runs at the start of its phase, with the rights and the labels of the load.
func ExampleAction() {
	res := onPlane(`
phases:
  - {name: rotate, for: 1s, actions: [{kind: custom, name: rotate-keys}]}
gates:
  - {name: length, objective: phase-duration, max: 1m}
`, loadgen.Options{Actions: map[string]loadgen.Action{"rotate-keys": rotation{}}})
	fmt.Println("phase", res.Measurements.Phases[0].Name, "failure:", res.Run.Failure)
	// Output:
	// phase rotate failure:
}

// The scenario sets the arrivals of a load, here 20 in one second.
func ExampleLoad() {
	res := onPlane(`
phases:
  - {name: rush, for: 1s, load: [{kind: custom, name: ping, rate: 20/s, arrival: constant}]}
gates:
  - {name: answered, objective: request-errors, load: ping, max: 0}
`, loadgen.Options{Loads: map[string]loadgen.Load{"ping": &pings{}}})
	r := res.Measurements.Phases[0].Requests[0]
	fmt.Println(r.Load, r.Verb, r.Succeeded == r.Sent)
	// Output:
	// ping call true
}
