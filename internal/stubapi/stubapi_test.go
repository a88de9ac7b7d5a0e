package stubapi

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
)

func start(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// client-go works with the stub, in both encodings.
func TestClientGo(t *testing.T) {
	for _, content := range []string{jsonType, protobufType} {
		t.Run(content, func(t *testing.T) {
			s := start(t, Options{})
			config := s.Config()
			config.ContentType, config.AcceptContentTypes = content, content
			c, err := kubernetes.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			ctx := t.Context()
			maps := c.CoreV1().ConfigMaps("storm")
			w, err := maps.Watch(ctx, metav1.ListOptions{LabelSelector: "a=b", ResourceVersion: "100"})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: map[string]string{"a": "b"}}}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			made.Data = map[string]string{"k": "v"}
			if _, err = maps.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := maps.Update(ctx, made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
				t.Errorf("a stale update: %v", err)
			}
			patched, err := maps.Patch(ctx, "x", types.MergePatchType, []byte(`{"data":{"k":null,"l":"w"}}`), metav1.PatchOptions{})
			if err != nil || len(patched.Data) != 1 || patched.Data["l"] != "w" {
				t.Errorf("patched to %v (%v)", patched.Data, err)
			}
			list, err := maps.List(ctx, metav1.ListOptions{})
			if err != nil || len(list.Items) != 1 || list.Items[0].Data["l"] != "w" {
				t.Errorf("list: %+v, %v", list, err)
			}
			if err := maps.Delete(ctx, "x", metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
			if _, err := maps.Get(ctx, "x", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("after deletion: %v", err)
			}
			var kinds string
			for range 4 {
				e := <-w.ResultChan()
				kinds += string(e.Type) + e.Object.(*corev1.ConfigMap).ResourceVersion + " "
			}
			if kinds != "ADDED101 MODIFIED102 MODIFIED103 DELETED104 " {
				t.Errorf("watched %s", kinds)
			}
			sent := s.Watches()[0].Sent
			if len(sent) != 4 || sent[3].RV != 104 {
				t.Errorf("record = %+v", sent)
			}
		})
	}
}

func TestFormsAndPages(t *testing.T) {
	s := start(t, Options{})
	s.Fill("storm", "x", 25, 10, map[string]string{"a": "b"})
	c, err := kubernetes.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	page, total := metav1.ListOptions{Limit: 10}, 0
	for {
		list, err := c.CoreV1().ConfigMaps("").List(t.Context(), page)
		if err != nil {
			t.Fatal(err)
		}
		total += len(list.Items)
		if page.Continue = list.Continue; page.Continue == "" {
			break
		}
	}
	if total != 25 {
		t.Errorf("all pages have %d objects", total)
	}
	m, err := metadata.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	maps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	list, err := m.Resource(maps).Namespace("storm").List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=x-3"})
	if err != nil || len(list.Items) != 1 || list.Items[0].Labels["a"] != "b" {
		t.Errorf("metadata: %+v, %v", list, err)
	}
	d, err := dynamic.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	widgets := d.Resource(schema.GroupVersionResource{Group: "load.stormglass.dev", Version: "v1", Resource: "widgets"}).Namespace("storm")
	w := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "w"}, "spec": map[string]any{"n": int64(1)}}}
	w.SetAPIVersion("load.stormglass.dev/v1")
	w.SetKind("Widget")
	if _, err := widgets.Apply(t.Context(), "w", w, metav1.ApplyOptions{FieldManager: "t"}); err != nil {
		t.Error(err)
	}
	if _, err := widgets.Get(t.Context(), "w", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	found, err := c.Discovery().ServerPreferredResources()
	if err != nil || len(found) != 4 {
		t.Errorf("discovered %v, %v", found, err)
	}
}

// In a synctest bubble, the latencies match the policy exactly.
func TestVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		s, err := Start(Options{
			Listener: NewPipes(),
			Policy:   Stall(50*time.Millisecond, begin.Add(time.Second), begin.Add(3*time.Second)),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		s.Fill("storm", "x", 1, 10, nil)
		config := s.Config()
		c, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		get := func() time.Duration {
			sent := time.Now()
			if _, err := c.CoreV1().ConfigMaps("storm").Get(t.Context(), "x-0", metav1.GetOptions{}); err != nil {
				t.Fatal(err)
			}
			return time.Since(sent)
		}
		if d := get(); d != 50*time.Millisecond {
			t.Errorf("before the stall: %v", d)
		}
		<-time.After(time.Until(begin.Add(1500 * time.Millisecond))) // virtual time
		if d := get(); d != 1500*time.Millisecond {
			t.Errorf("within the stall: %v", d)
		}
		for i, want := range []time.Duration{50 * time.Millisecond, 1500 * time.Millisecond} {
			if got := s.Exchanges()[i].Latency(); got != want {
				t.Errorf("the record has %v, want %v", got, want)
			}
		}
	})
}

func TestTape(t *testing.T) {
	for name, c := range map[string]struct {
		spoils map[int64]Spoil
		want   string
	}{
		"nothing":       {nil, "1 2 3 4"},
		"drop":          {map[int64]Spoil{1: Drop}, "1 3 4"},
		"double":        {map[int64]Spoil{1: Double}, "1 2 2 3 4"},
		"swap":          {map[int64]Spoil{1: Swap}, "1 3 2 4"},
		"swap and drop": {map[int64]Spoil{1: Swap, 2: Drop}, "1 4 2"},
		"swap the last": {map[int64]Spoil{3: Swap}, "1 2 3"},
		"swap twice":    {map[int64]Spoil{0: Swap, 1: Swap}, "2 1 3 4"},
		"end":           {map[int64]Spoil{2: Gone}, "1 2 -"},
	} {
		tp := eventScript{script: Spoils(map[int64]map[int64]Spoil{5: c.spoils}), watch: 5}
		got := ""
		for rv := range uint64(4) {
			for _, p := range tp.next(&event{kind: modified, rv: rv + 1}) {
				if p.event == nil {
					got += " -"
				} else {
					got += fmt.Sprint(" ", p.event.rv)
				}
			}
		}
		if got != " "+c.want {
			t.Errorf("%s: sent%s, want %s", name, got, c.want)
		}
	}
}

// The server can end after any fault.
func TestFaultsEnd(t *testing.T) {
	s := start(t, Options{})
	c, err := kubernetes.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	s.Fill("storm", "x", 1, 10, nil)
	for f := Reset; f <= BadFrame; f++ {
		first := int64(len(s.Exchanges()))
		s.SetPolicy(func(r Request) Answer {
			if r.N > first {
				return Answer{} // net/http repeats some requests without reporting it
			}
			return Answer{Fault: f}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if f == Silence {
			cancel()
		}
		_, err := c.CoreV1().ConfigMaps("storm").Get(ctx, "x-0", metav1.GetOptions{})
		cancel()
		if err == nil && int64(len(s.Exchanges())) < first+2 {
			t.Errorf("the client did not notice fault %d", f)
		}
	}
	var list *apierrors.StatusError
	s.SetPolicy(Always(Answer{Status: 500}))
	if _, err := c.CoreV1().ConfigMaps("storm").List(t.Context(), metav1.ListOptions{}); !errors.As(err, &list) || list.Status().Code != 500 {
		t.Errorf("500: %v", err)
	}
}
