package deploy_test

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stormglass/stormglass/deploy/deploytest"
)

// One `kubectl apply -k` creates a run with all objects that it needs. Its workers use the same image.
func TestRunKustomization(t *testing.T) {
	const image = "registry.example.com/stormglass/loadgen"
	for set, want := range map[string]string{
		"{name: " + image + ", newTag: v1}":                                             image + ":v1",
		"{name: " + image + ", newName: registry.example.com:5000/mine/lg, newTag: v2}": "registry.example.com:5000/mine/lg:v2",
	} {
		files, folder := filesys.MakeFsInMemory(), "run"
		for _, name := range []string{"kustomization.yaml", "run.yaml"} {
			text, err := filesys.MakeFsOnDisk().ReadFile(deploytest.Root(t) + "/deploy/kubernetes/run/" + name)
			if err != nil {
				t.Fatal(err)
			}
			text = []byte(strings.Replace(string(text), "  - name: "+image+"\n    newTag: v1\n", "  - "+set+"\n", 1))
			if err := files.WriteFile(folder+"/"+name, text); err != nil {
				t.Fatal(err)
			}
		}
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, folder)
		if err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for _, r := range built.Resources() {
			kinds = append(kinds, r.GetKind())
			if r.GetKind() != "Job" {
				continue
			}
			m, err := r.Map()
			if err != nil {
				t.Fatal(err)
			}
			var job batchv1.Job
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, &job); err != nil {
				t.Fatal(err)
			}
			c := job.Spec.Template.Spec.Containers[0]
			if c.Image != want || !slices.Contains(c.Args, "--image="+want) {
				t.Errorf("image %s, args %q, want %s", c.Image, c.Args, want)
			}
		}
		for _, kind := range []string{"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ConfigMap", "Job", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
			if !slices.Contains(kinds, kind) {
				t.Errorf("%s is missing in %v", kind, kinds)
			}
		}
	}
}
