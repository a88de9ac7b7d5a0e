package control

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stormglass/stormglass/internal/strictyaml"
)

// Release is a minor version of Kubernetes, with the versions of its components and of the matching etcd.
type Release struct {
	// Minor is the minor version of Kubernetes, such as "1.37". Kubernetes and Etcd are complete versions, such as
	// "v1.37.1" and "3.7.0".
	Minor, Kubernetes, Etcd string
}

// String returns the release's versions: "Kubernetes v1.37.1 and etcd 3.7.0".
func (r Release) String() string {
	return fmt.Sprintf("Kubernetes %s and etcd %s", r.Kubernetes, r.Etcd)
}

// Releases returns the releases that a plane's components can have, newest first.
func Releases() []Release {
	return []Release{
		{Minor: "1.37", Kubernetes: "v1.37.1", Etcd: "3.7.0"},
		{Minor: "1.36", Kubernetes: "v1.36.3", Etcd: "3.6.14"},
		{Minor: "1.35", Kubernetes: "v1.35.4", Etcd: "3.6.14"},
	}
}

// Newest returns the newest release. A controlplane program that is built without VERSION links this release.
func Newest() Release { return Releases()[0] }

// ReleaseOf returns the release with a minor version such as "1.36", and false if there is no such release.
func ReleaseOf(minor string) (Release, bool) {
	all := Releases()
	i := slices.IndexFunc(all, func(r Release) bool { return r.Minor == minor })
	if i < 0 {
		return Release{}, false
	}
	return all[i], true
}

// ReleaseBinary returns the name of the controlplane program with a release's components.
func ReleaseBinary(r Release) string { return "controlplane-" + r.Minor }

// BuildHint returns a hint that says how to build the controlplane program with a release's components.
func BuildHint(r Release) string { return "make controlplane VERSION=" + r.Minor + " builds it" }

// VersionedKinds returns the kinds of component that come with a Kubernetes release, in the order in which upstream
// upgrades them. The other kinds belong to Stormglass or have their own versions.
func VersionedKinds() []string {
	return []string{KindEtcd, KindAPIServer, KindControllerManager, KindScheduler, KindCloudControllerManager}
}

// VersionOf returns the version of a kind of component in a release. It returns "" if the kind does not come with a
// release.
func (r Release) VersionOf(kind string) string {
	switch {
	case kind == KindEtcd:
		return r.Etcd
	case slices.Contains(VersionedKinds(), kind):
		return r.Kubernetes
	}
	return ""
}

// number returns the minor version of a kind of component in the release, as a number for comparisons.
func (r Release) number(kind string) int {
	return minorNumber(strings.TrimPrefix(r.VersionOf(kind), "v"))
}

// OlderThan reports whether a kind of component has a lower minor version in release r than in other.
func (r Release) OlderThan(other Release, kind string) bool {
	return r.number(kind) < other.number(kind)
}

// AtLeast reports whether r has the given minor version, such as "1.37", or a newer one.
func (r Release) AtLeast(minor string) bool { return minorNumber(r.Minor) >= minorNumber(minor) }

// minorNumber returns the minor number of a version: 36 for "1.36" and for "1.36.3".
func minorNumber(version string) int {
	_, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	n, _ := strconv.Atoi(minor)
	return n
}

// ReleaseOf returns the release of a component in a plane with this config.
func (c Config) ReleaseOf(component string) Release {
	kind := ComponentKind(component)
	if !slices.Contains(VersionedKinds(), kind) {
		return Newest()
	}
	r, ok := ReleaseOf(cmp.Or(c.Versions[component], c.Versions[kind], c.Version))
	if !ok {
		return Newest()
	}
	return r
}

// ReleasesOf returns the releases of a kind's components, newest first.
func (c Config) ReleasesOf(kind string) []Release {
	return slices.DeleteFunc(Releases(), func(r Release) bool {
		return !slices.ContainsFunc(c.ComponentsOf(kind), func(name string) bool { return c.ReleaseOf(name) == r })
	})
}

// InRelease returns a copy of c in which the component has release r.
func (c Config) InRelease(component string, r Release) Config {
	c.Versions = maps.Clone(c.Versions)
	if c.Versions == nil {
		c.Versions = map[string]string{}
	}
	c.Versions[component] = r.Minor
	return c
}

func (c Config) releaseProblems() (all []Problem) {
	check := func(path, version string) bool {
		if _, ok := ReleaseOf(version); version == "" || ok {
			return true
		}
		all = append(all, Problem{path, fmt.Sprintf("unknown version %q", version), ReleaseHint(version)})
		return false
	}
	sound := check("version", c.Version)
	for _, on := range slices.Sorted(maps.Keys(c.Versions)) {
		path := "versions." + on
		s, ok := ParseSelector(on)
		switch {
		case !ok || s.Role != "" || !slices.Contains(VersionedKinds(), s.Kind):
			hint := strictyaml.Hint(on, VersionedKinds(), "a kind or a name, such as kube-controller-manager or kube-apiserver-1")
			all = append(all, Problem{path, fmt.Sprintf("%q is not a component whose version can be set", on), hint})
		case c.Count(s.Kind) == 0:
			all = append(all, Problem{path, "this control plane has no " + s.Kind, "the setting " + KindOf(s.Kind).Field + " adds one"})
		case s.Name != "" && s.Index >= c.Count(s.Kind):
			all = append(all, Problem{path, "there is no " + on, "there is " + names(s.Kind, c.Count(s.Kind))})
		default:
			sound = check(path, c.Versions[on]) && sound
			continue
		}
		sound = false
	}
	if sound {
		if msg, hint := c.skew(); msg != "" {
			path := "version"
			if len(c.Versions) > 0 {
				path = "versions"
			}
			all = append(all, Problem{path, msg, hint})
		}
		all = append(all, c.emulationProblems()...)
	}
	return all
}

const (
	skewHint = "upstream's version skew policy: API servers may differ by one minor version, their clients may be one minor version older, and etcd members may differ by one version"
	// emulatedBack is the number of minor versions by which an emulated version may be older than the component.
	emulatedBack = 3
)

// skew returns a message that says how the components' versions violate upstream's version skew policy, and a hint.
// Both are "" if they do not violate it.
func (c Config) skew() (msg, hint string) {
	oldest, newest := c.span(KindAPIServer)
	if c.number(newest)-c.number(oldest) > 1 {
		return fmt.Sprintf("%s has version %s and %s has version %s", oldest, c.ReleaseOf(oldest).Minor, newest, c.ReleaseOf(newest).Minor), skewHint
	}
	for _, kind := range []string{KindControllerManager, KindScheduler, KindCloudControllerManager} {
		for _, name := range c.ComponentsOf(kind) {
			switch n := c.number(name); {
			case n > c.number(oldest):
				return fmt.Sprintf("%s with version %s is newer than %s with version %s", name, c.ReleaseOf(name).Minor, oldest, c.ReleaseOf(oldest).Minor), skewHint
			case n < c.number(newest)-1:
				return fmt.Sprintf("%s with version %s is more than one minor version older than %s with version %s", name, c.ReleaseOf(name).Minor, newest, c.ReleaseOf(newest).Minor), skewHint
			}
		}
	}
	if oldest, newest := c.span(KindEtcd); c.number(newest)-c.number(oldest) > 1 {
		return fmt.Sprintf("%s has etcd %s and %s has etcd %s", oldest, c.ReleaseOf(oldest).Etcd, newest, c.ReleaseOf(newest).Etcd), skewHint
	}
	return "", ""
}

// OldestAPIServer returns the oldest release among the API servers.
func (c Config) OldestAPIServer() Release {
	oldest, _ := c.span(KindAPIServer)
	return c.ReleaseOf(oldest)
}

// kubeletBack is the maximum number of minor versions by which a kubelet may be older than an API server.
const kubeletBack = 3

// KubeletSkew returns a message that says how kubelets of release r violate upstream's version skew policy, or "".
func (c Config) KubeletSkew(r Release) string {
	oldest, newest := c.span(KindAPIServer)
	switch n := r.number(KindAPIServer); {
	case n > c.number(oldest):
		return fmt.Sprintf("kubelets with version %s are newer than %s with version %s", r.Minor, oldest, c.ReleaseOf(oldest).Minor)
	case n < c.number(newest)-kubeletBack:
		return fmt.Sprintf("kubelets with version %s are more than %d minor versions older than %s with version %s", r.Minor, kubeletBack, newest, c.ReleaseOf(newest).Minor)
	}
	return ""
}

func (c Config) number(component string) int {
	return c.ReleaseOf(component).number(ComponentKind(component))
}

// span returns the names of a kind's components with the oldest and with the newest version.
func (c Config) span(kind string) (oldest, newest string) {
	of := c.ComponentsOf(kind)
	byVersion := func(a, b string) int { return cmp.Compare(c.number(a), c.number(b)) }
	return slices.MinFunc(of, byVersion), slices.MaxFunc(of, byVersion)
}

func (c Config) emulationProblems() []Problem {
	if c.EmulatedVersion == "" {
		return nil
	}
	const path = "emulatedVersion"
	major, _, ok := strings.Cut(c.EmulatedVersion, ".")
	n := minorNumber(c.EmulatedVersion)
	if major != "1" || !ok || c.EmulatedVersion != fmt.Sprintf("1.%d", n) {
		return []Problem{{path, fmt.Sprintf("%q is not a minor version", c.EmulatedVersion), "for example 1.36"}}
	}
	for _, kind := range emulatingKinds() {
		for _, name := range c.ComponentsOf(kind) {
			switch own := c.number(name); {
			case n > own:
				return []Problem{{path, fmt.Sprintf("%s with version %s cannot emulate a newer version", name, c.ReleaseOf(name).Minor), fmt.Sprintf("1.%d or older", own)}}
			case n < own-emulatedBack:
				return []Problem{{path, fmt.Sprintf("%s with version %s can emulate only 1.%d and newer versions", name, c.ReleaseOf(name).Minor, own-emulatedBack), fmt.Sprintf("1.%d or newer", own-emulatedBack)}}
			}
		}
	}
	for path, flags := range map[string]Flags{"apiServer": c.APIServer.Flags, "scheduler": c.Scheduler.Flags, "controllerManager": c.ControllerManager.Flags} {
		if _, ok := flags[EmulatedFlag]; ok {
			return []Problem{{path + ".flags." + EmulatedFlag, "emulatedVersion already sets this flag", "keep one of the two"}}
		}
	}
	return nil
}

// EmulatedFlag is the flag that makes a component emulate a version.
const EmulatedFlag = "emulated-version"

func emulatingKinds() []string { return []string{KindAPIServer, KindControllerManager, KindScheduler} }

// Emulates reports whether components of a kind emulate the config's EmulatedVersion.
func (c Config) Emulates(kind string) bool {
	return c.EmulatedVersion != "" && slices.Contains(emulatingKinds(), kind)
}
