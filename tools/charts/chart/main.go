// Chart renders a Helm chart with Helm's engine, as `helm template` does. It prints the rendered files as JSON, by
// their names in the chart:
//
//	go run . CHART RELEASE NAMESPACE REVISION <values.yaml
//
// It fails if the chart's schema refuses the values or if a template fails. It is a separate module because it depends on Helm.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func run(args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) != 4 {
		return errors.New("usage: chart CHART RELEASE NAMESPACE REVISION <values.yaml")
	}
	revision, err := strconv.Atoi(args[3])
	if err != nil {
		return fmt.Errorf("revision %q is not a number", args[3])
	}
	chart, err := loader.Load(args[0])
	if err != nil {
		return err
	}
	text, err := io.ReadAll(stdin)
	if err != nil {
		return err
	}
	values := map[string]any{}
	if err := yaml.UnmarshalStrict(text, &values); err != nil {
		return fmt.Errorf("values: %w", err)
	}
	release := common.ReleaseOptions{Name: args[1], Namespace: args[2], Revision: revision, IsInstall: revision == 1, IsUpgrade: revision > 1}
	top, err := util.ToRenderValues(chart, values, release, nil)
	if err != nil {
		return err
	}
	files, err := engine.Render(chart, top)
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(files)
}
