package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// TestTooSmallMachineIsRefused checks that a plane refuses a machine with too few resources, and that the error states
// the missing amount.
func TestTooSmallMachineIsRefused(t *testing.T) {
	one := control.Config{}
	many := control.Config{
		Etcd: control.Etcd{Members: 3}, APIServer: control.APIServer{Replicas: 2},
		ControllerManager: control.ControllerManager{Replicas: 2}, Scheduler: control.Scheduler{Replicas: 2},
	}
	wide := control.Config{APIServer: control.APIServer{Descriptors: 65536}}
	large := resources{descriptors: 1 << 20, disk: 1 << 40, memory: 1 << 36}
	with := func(edit func(*resources)) resources {
		m := large
		edit(&m)
		return m
	}
	for name, c := range map[string]struct {
		cfg     control.Config
		resumed bool
		has     resources
		want    string
	}{
		"enough":                   {many, false, large, ""},
		"a system that says less":  {many, false, with(func(m *resources) { m.memory = 0 }), ""},
		"descriptors of one":       {one, false, with(func(m *resources) { m.descriptors = 4096 }), ""},
		"descriptors of many":      {many, false, with(func(m *resources) { m.descriptors = 4096 }), "4096 less than the 8192"},
		"descriptors as asked for": {wide, false, with(func(m *resources) { m.descriptors = 20000 }), "45536 less than the 65536"},
		"disk of one":              {one, false, with(func(m *resources) { m.disk = 255 << 20 }), "255 MB are free, 1 MB less than the 256 MB"},
		"disk of many":             {many, false, with(func(m *resources) { m.disk = 256 << 20 }), "256 MB less than the 512 MB"},
		"disk of a resumed one":    {one, true, with(func(m *resources) { m.disk = 128 << 20 }), ""},
		"memory of many":           {many, false, with(func(m *resources) { m.memory = 512 << 20 }), "too little memory: 512 MB are available"},
	} {
		t.Run(name, func(t *testing.T) {
			err := needOf(c.cfg, c.resumed).check("/plane", c.has)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("check = %v, want %q", err, c.want)
			}
		})
	}
}

// TestDefaultsOfFirstComponent checks that the defaults come from the first component's release, because a plane lists
// the deviations of only the first component.
func TestDefaultsOfFirstComponent(t *testing.T) {
	releases := control.Releases()[:2]
	for i, first := range releases {
		cfg := control.Config{
			APIServer: control.APIServer{Replicas: 2, Flags: control.Flags{"min-request-timeout": "60"}},
			Versions:  map[string]string{"kube-apiserver-0": first.Minor, "kube-apiserver-1": releases[1-i].Minor},
		}
		defaults := Defaults{}
		for _, r := range cfg.ReleasesOf(control.KindAPIServer) {
			program := filepath.Join(t.TempDir(), control.ReleaseBinary(r))
			answer := fmt.Sprintf(`{"defaults": {"min-request-timeout": %q}}`, "default of "+r.Minor)
			if err := os.WriteFile(program, []byte("#!/bin/sh\ncat >/dev/null\necho '"+answer+"'\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			if _, err := checkRelease(t.Context(), program, cfg, r, defaults); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := defaults[control.KindAPIServer]["min-request-timeout"], "default of "+first.Minor; got != want {
			t.Errorf("default with kube-apiserver-0 in release %s = %q, want %q", first.Minor, got, want)
		}
	}
}

// TestResumeWithOtherMembersIsRefused checks that etcd's data can be used only with the members that wrote it.
func TestResumeWithOtherMembersIsRefused(t *testing.T) {
	l := topology.Layout{Dir: t.TempDir()}
	three := control.Config{Etcd: control.Etcd{Members: 3}}
	if err := fits(l, three); err != nil {
		t.Errorf("fits without earlier data = %v, want nil", err)
	}
	if err := writeJSON(l.Config(), three); err != nil {
		t.Fatal(err)
	}
	tuned := three
	tuned.APIServer.Replicas = 2
	for want, cfg := range map[string]control.Config{
		"": tuned,
		"belongs to 3 members, not 1 (choose another --dir":     {},
		"in the data of the 3 etcd members in " + l.Dir + " (k": {Etcd: three.Etcd, NetworkFaults: control.NetworkFaultsOff},
	} {
		if err := fits(l, cfg); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("fits = %v, want %q", err, want)
		}
	}
	off := control.Config{Etcd: three.Etcd, NetworkFaults: control.NetworkFaultsOff}
	if err := samePeers(topology.Ports{"etcd-1/peer": 5}, topology.Ports{"etcd-1/peer": 6}, off); err == nil || !strings.Contains(err.Error(), "etcd-1: another process uses its port 5") {
		t.Errorf("samePeers for a changed peer port = %v, want an error", err)
	}
	if err := samePeers(topology.Ports{"etcd-1/peer": 5}, topology.Ports{"etcd-1/peer": 6}, three); err != nil {
		t.Errorf("samePeers with peers addressed by name = %v, want nil", err)
	}
}
