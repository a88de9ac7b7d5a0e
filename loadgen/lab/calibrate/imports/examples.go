package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// testValues returns the variables that kube-burner's own tests set in their configurations (test/test-k8s.bats), but
// with indexing turned off.
func testValues() []string {
	return []string{
		"QPS=10", "BURST=10", "JOB_ITERATIONS=5", "JOB_NAME=stormglass", "NAMESPACE=example", "REPLICAS=2", "GC=true", "JOBGC=false", "PRELOAD_IMAGES=false",
		"CHURN_CYCLES=0", "CHURN_MODE=namespaces", "ES_INDEXING=", "LOCAL_INDEXING=", "TSDB_INDEXING=", "ALERTING=", "TIMESERIES_INDEXER=", "SVC_LATENCY=",
		"CRD=", "INCREMENTAL_LOAD=", "LABEL_KEY=kube-burner", "LABEL_VALUE_START=start", "LABEL_VALUE_END=end", "STORAGE_CLASS_NAME=standard",
		"VOLUME_SNAPSHOT_CLASS_NAME=standard", "HOOKS_IMAGE=pause", "METRICS_FOLDER=metrics", "deploymentLabelFromFile=file", "deploymentLabelFromEnv=env",
		"deploymentLabelFromFileOverride=override",
	}
}

// kubeBurner returns the example workloads of kube-burner and the configurations of its tests.
func kubeBurner(dir string) (all []example, err error) {
	for _, pattern := range []string{"examples/workloads/*/*.yml", "test/k8s/kube-burner*.yml"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			args := []string{"kube-burner", file}
			if strings.HasPrefix(pattern, "test") {
				for _, value := range testValues() {
					args = append(args, "--set", value)
				}
			}
			all = append(all, example{relative(dir, file), args})
		}
	}
	return all, nil
}

var (
	namedTest = regexp.MustCompile(`(?m)^name:`)
	withSteps = regexp.MustCompile(`(?m)^steps:`)
)

// clusterLoader returns the tests of ClusterLoader2: the YAML files with a name and steps.
func clusterLoader(dir string) (all []example, err error) {
	below := filepath.Join(dir, "clusterloader2", "testing")
	err = filepath.WalkDir(below, func(path string, f fs.DirEntry, err error) error {
		if err != nil || f.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		data, err := os.ReadFile(path)
		if err == nil && namedTest.Match(data) && withSteps.Match(data) {
			all = append(all, example{relative(below, path), []string{"clusterloader2", path}})
		}
		return err
	})
	return all, err
}

// kwok returns the directories of KWOK that contain Stages.
func kwok(dir string) (all []example, err error) {
	below := filepath.Join(dir, "kustomize", "stage")
	err = filepath.WalkDir(below, func(path string, f fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case f.IsDir() && f.Name() == "testdata":
			return filepath.SkipDir
		case f.IsDir() || filepath.Ext(path) != ".yaml":
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(data), "kind: Stage") {
			return err
		}
		name := relative(below, filepath.Dir(path))
		if !slices.ContainsFunc(all, func(e example) bool { return e.name == name }) {
			all = append(all, example{name, []string{"kwok", filepath.Dir(path)}})
		}
		return nil
	})
	return all, err
}

func relative(dir, path string) string {
	if name, err := filepath.Rel(dir, path); err == nil {
		return filepath.ToSlash(name)
	}
	return path
}
