// Package version determines and prints the source from which a program was built.
package version

import (
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// version, commit and date get their values from the linker. The Makefile sets only version, from git; a release sets
// all three. If a variable is empty, resolve uses the value that the go command has recorded.
var version, commit, date string

// Info describes the source from which a program was built.
type Info struct {
	// Version is a tag, a pseudo-version or the output of `git describe`. It is "(devel)" if none of these is known.
	Version string `json:"version"`
	// Commit is the commit of the source: 40 digits, or 12 if it is known only from a pseudo-version. It is "" if the
	// commit is unknown.
	Commit string `json:"commit,omitempty"`
	// Date is the time of the commit, in RFC 3339; "" if unknown.
	Date string `json:"date,omitempty"`
	// Dirty reports whether the source had uncommitted changes.
	Dirty bool `json:"dirty"`
	// GoVersion is the version of the Go compiler. Platform is the operating system and the architecture, such as
	// linux/amd64.
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
	// Kubernetes and Etcd are the default versions of a plane that this program starts.
	Kubernetes string `json:"kubernetes"`
	Etcd       string `json:"etcd"`
}

// Program returns the version of this program.
func Program() string { return read().Version }

// Revision returns the first twelve digits of the commit from which this program was built, or "" if the commit is
// unknown.
func Revision() string {
	commit := read().Commit
	return commit[:min(12, len(commit))]
}

func read() Info {
	build, _ := debug.ReadBuildInfo()
	info := resolve(Info{Version: version, Commit: commit, Date: date}, build)
	info.GoVersion, info.Platform = runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH
	return info
}

// pseudoVersion matches the time and the commit at the end of a pseudo-version: https://go.dev/ref/mod#pseudo-versions.
var pseudoVersion = regexp.MustCompile(`[-.](\d{14})-([0-9a-f]{12})(?:\+.*)?$`)

// resolve completes the values that the linker set with the values that the go command recorded: the VCS revision for a
// build in a checkout, and the module's version for `go install MODULE@VERSION`. build may be nil.
func resolve(linked Info, build *debug.BuildInfo) Info {
	info := linked
	settings := map[string]string{}
	if build != nil {
		for _, s := range build.Settings {
			settings[s.Key] = s.Value
		}
		if v := build.Main.Version; info.Version == "" && v != "(devel)" {
			info.Version = v
		}
	}
	if info.Commit == "" {
		info.Commit, info.Date = settings["vcs.revision"], settings["vcs.time"]
	}
	if m := pseudoVersion.FindStringSubmatch(info.Version); m != nil && info.Commit == "" {
		info.Commit = m[2]
		if at, err := time.Parse("20060102150405", m[1]); err == nil {
			info.Date = at.Format(time.RFC3339)
		}
	}
	info.Dirty = settings["vcs.modified"] == "true" || strings.HasSuffix(info.Version, "dirty")
	if info.Version == "" {
		info.Version = "(devel)"
	}
	return info
}
