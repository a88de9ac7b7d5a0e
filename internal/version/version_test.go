package version

import (
	"bytes"
	"encoding/json"
	"errors"
	"runtime/debug"
	"strings"
	"testing"
)

// Each kind of build reports its version.
func TestVersionOfEachKindOfBuild(t *testing.T) {
	const commit = "2155e9ff6f0a4c1f0d6d8e3bb6e0cbb5a0f0c8d1"
	checkout := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: commit}, {Key: "vcs.time", Value: "2026-11-25T23:36:00Z"}, {Key: "vcs.modified", Value: modified}}
	}
	for name, c := range map[string]struct {
		linked Info
		build  *debug.BuildInfo
		want   Info
	}{
		"go install of a tag": {
			build: &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}},
			want:  Info{Version: "v1.2.3"},
		},
		"go install of a commit": {
			build: &debug.BuildInfo{Main: debug.Module{Version: "v0.0.0-20261125233600-2155e9ff6f0a"}},
			want:  Info{Version: "v0.0.0-20261125233600-2155e9ff6f0a", Commit: "2155e9ff6f0a", Date: "2026-11-25T23:36:00Z"},
		},
		"go install of a commit after a tag": {
			build: &debug.BuildInfo{Main: debug.Module{Version: "v1.2.4-0.20261125233600-2155e9ff6f0a"}},
			want:  Info{Version: "v1.2.4-0.20261125233600-2155e9ff6f0a", Commit: "2155e9ff6f0a", Date: "2026-11-25T23:36:00Z"},
		},
		"go build in a checkout": {
			build: &debug.BuildInfo{Main: debug.Module{Version: "v1.2.4-0.20261125233600-2155e9ff6f0a+dirty"}, Settings: checkout("true")},
			want:  Info{Version: "v1.2.4-0.20261125233600-2155e9ff6f0a+dirty", Commit: commit, Date: "2026-11-25T23:36:00Z", Dirty: true},
		},
		"make in a checkout": {
			linked: Info{Version: "v1.2.3-4-g2155e9ff"},
			build:  &debug.BuildInfo{Main: debug.Module{Version: "v1.2.4-0.20261125233600-2155e9ff6f0a"}, Settings: checkout("false")},
			want:   Info{Version: "v1.2.3-4-g2155e9ff", Commit: commit, Date: "2026-11-25T23:36:00Z"},
		},
		"make in a checkout, without stamps": {
			linked: Info{Version: "v1.2.3-4-g2155e9ff-dirty"},
			build:  &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}},
			want:   Info{Version: "v1.2.3-4-g2155e9ff-dirty", Dirty: true},
		},
		"a release": {
			linked: Info{Version: "1.2.3", Commit: commit, Date: "2026-11-26T00:00:00Z"},
			build:  &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: checkout("false")},
			want:   Info{Version: "1.2.3", Commit: commit, Date: "2026-11-26T00:00:00Z"},
		},
		"go build of an unpacked archive": {
			build: &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}},
			want:  Info{Version: "(devel)"},
		},
		"a build without modules": {want: Info{Version: "(devel)"}},
	} {
		if got := resolve(c.linked, c.build); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestCommand(t *testing.T) {
	run := func(args ...string) (string, error) {
		cmd := Command("loadgen", "v1.37.1", "3.7.0")
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		cmd.SetArgs(args)
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	text, err := run()
	if err != nil || !strings.HasPrefix(text, "loadgen     "+Program()+"\n") || !strings.Contains(text, "\nkubernetes  v1.37.1\netcd        3.7.0\n") {
		t.Errorf("%v\n%s", err, text)
	}
	out, err := run("-o", "json")
	var got map[string]any
	if err := errors.Join(err, json.Unmarshal([]byte(out), &got)); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"version", "dirty", "goVersion", "platform", "kubernetes", "etcd"} {
		if v, ok := got[field]; !ok || v == "" {
			t.Errorf("%s is missing: %s", field, out)
		}
	}
}
