package controlplane_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/planetest"
)

// TestEncryption reads from etcd how Secrets are stored, before and after the provider changes.
func TestEncryption(t *testing.T) {
	dir := filepath.Join(planetest.Dir(t), "plane")
	config := filepath.Join(t.TempDir(), "config.yaml")
	configure := func(provider string) {
		t.Helper()
		if err := os.WriteFile(config, []byte("apiServer: {encryption: "+provider+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	up := func(provider string) control.Cluster {
		t.Helper()
		configure(provider)
		var c control.Cluster
		if err := json.Unmarshal([]byte(ok(t, "up", "--detach", "--dir", dir, "--config", config, "--output", "json")), &c); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { run(t, "down", "--dir", dir) })
		return c
	}
	create := func(c control.Cluster, name string) {
		t.Helper()
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"password": "swordfish"}}
		if _, err := client(t, c, "admin").CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		kept := ok(t, "etcdctl", "--dir", dir, "get", "--print-value-only", "/registry/secrets/default/"+name)
		if want := "k8s:enc:" + name + ":v1:stormglass:"; !strings.HasPrefix(kept, want) || strings.Contains(kept, "swordfish") {
			t.Errorf("etcd stores %.60q, want the prefix %s and no plain text", kept, want)
		}
	}
	create(up("secretbox"), "secretbox")
	ok(t, "down", "--dir", dir)

	c := up("aesgcm")
	create(c, "aesgcm")
	list, err := client(t, c, "admin").CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list.Items {
		if string(s.Data["password"]) != "swordfish" {
			t.Errorf("Secret %s contains %q, want swordfish", s.Name, s.Data)
		}
	}
	if len(list.Items) != 2 {
		t.Errorf("got %d Secrets, want 2", len(list.Items))
	}
	ok(t, "down", "--dir", dir)

	configure("off")
	if _, stderr, code := run(t, "up", "--detach", "--dir", dir, "--config", config); code == 0 || !strings.Contains(stderr, "apiServer.encryption: the Secrets in") {
		t.Errorf("start of a plane that cannot read its Secrets: exit %d, %s", code, stderr)
	}
}
