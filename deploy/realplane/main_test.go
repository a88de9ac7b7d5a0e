package realplane

import (
	"os"
	"testing"

	"github.com/stormglass/stormglass/internal/planetest"
)

var plane planetest.Plane

func TestMain(m *testing.M) { os.Exit(planetest.Main(m, &plane)) }

func TestPrograms(t *testing.T) { planetest.Programs(t) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
