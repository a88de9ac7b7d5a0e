package browsertest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestAnyChromiumIsFound(t *testing.T) {
	only := func(there ...string) func(string) (string, error) {
		return func(name string) (string, error) {
			if slices.Contains(there, name) {
				return "/bin/" + name, nil
			}
			return "", fmt.Errorf("%s: not found", name)
		}
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge", "brave-browser", "chrome-headless-shell"} {
		if path, err := find("", only(name)); err != nil || path != "/bin/"+name {
			t.Errorf("%s: %q, %v", name, path, err)
		}
	}
	if path, err := find("mine", only("mine", "chromium")); err != nil || path != "/bin/mine" {
		t.Errorf("named: %q, %v", path, err)
	}
	if _, err := find("mine", only("chromium")); err == nil || !strings.HasPrefix(err.Error(), browserEnv+": mine: not found") {
		t.Errorf("named and not there: %v", err)
	}
	if _, err := find("", only()); err == nil || !strings.HasPrefix(err.Error(), "no browser: ") {
		t.Errorf("none: %v", err)
	}
}
