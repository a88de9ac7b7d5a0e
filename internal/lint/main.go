// Lint is the vet tool of this repository: `go vet -vettool=bin/lint ./...`. It runs the analyzers of go vet,
// staticcheck and errcheck. The go command caches its results, so a second run takes seconds.
package main

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/kisielk/errcheck/errcheck"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/nilness"
	"golang.org/x/tools/go/analysis/passes/unusedwrite"
	"golang.org/x/tools/go/analysis/suite/vet"
	"golang.org/x/tools/go/analysis/unitchecker"
	"honnef.co/go/tools/simple"
	"honnef.co/go/tools/staticcheck"
	"honnef.co/go/tools/stylecheck"
	"honnef.co/go/tools/unused"
)

// off lists the staticcheck checks that do not run. By default, staticcheck does not run them either.
var off = []string{
	"SA9003", // empty branches
	"ST1003", // names: Kubernetes and Prometheus have other conventions
	"ST1016", // names of receivers
}

// mayFail matches functions whose errors callers may ignore: the caller can do nothing about the error, or the error
// repeats the error of an earlier write.
var mayFail = regexp.MustCompile(`^fmt\.Fprint|^os\.Remove|\.[cC]lose$`)

func main() {
	checks := slices.Concat(vet.Suite, []*analysis.Analyzer{ignoredErrors, unusedCode, nilness.Analyzer, unusedwrite.Analyzer})
	for _, c := range slices.Concat(staticcheck.Analyzers, simple.Analyzers, stylecheck.Analyzers) {
		if !slices.Contains(off, c.Analyzer.Name) {
			checks = append(checks, c.Analyzer)
		}
	}
	unitchecker.Main(checks...)
}

// ignoredErrors reports calls whose errors are neither checked nor assigned to _, unless mayFail matches the function.
var ignoredErrors = &analysis.Analyzer{
	Name:     "ignorederrors",
	Doc:      "report errors that are ignored",
	Requires: []*analysis.Analyzer{errcheck.Analyzer},
	Run: func(pass *analysis.Pass) (any, error) {
		files := filesOf(pass)
		for _, e := range pass.ResultOf[errcheck.Analyzer].(errcheck.Result).UncheckedErrors {
			if file := files[e.Pos.Filename]; file != nil && e.FuncName != "" && !mayFail.MatchString(e.FuncName) {
				pass.Reportf(file.LineStart(e.Pos.Line), "the error of %s is ignored (check it, or assign it to _)", e.FuncName)
			}
		}
		return nil, nil
	},
}

// unusedCode reports the unused code that unused.Analyzer returns. The go command vets a package twice, without and
// with its tests. If there are tests, unusedCode checks only the package with the tests, because the tests may use the
// code.
var unusedCode = &analysis.Analyzer{
	Name:     "unused",
	Doc:      "report unused code",
	Requires: []*analysis.Analyzer{unused.Analyzer.Analyzer},
	Run: func(pass *analysis.Pass) (any, error) {
		files := filesOf(pass)
		if lacksTests(pass.Pkg.Name(), files) {
			return nil, nil
		}
		for _, o := range pass.ResultOf[unused.Analyzer.Analyzer].(unused.Result).Unused {
			if file := files[o.Position.Filename]; file != nil {
				pass.Reportf(file.LineStart(o.Position.Line), "%s %s is unused (U1000)", o.Kind, o.Name)
			}
		}
		return nil, nil
	},
}

// lacksTests reports whether the directory of the files has tests of the package pkg that are not among the files.
func lacksTests(pkg string, files map[string]*token.File) bool {
	for name := range files {
		if strings.HasSuffix(name, "_test.go") {
			return false
		}
	}
	for name := range files {
		tests, _ := filepath.Glob(filepath.Join(filepath.Dir(name), "*_test.go")) // the pattern is valid
		return slices.ContainsFunc(tests, func(test string) bool {
			f, err := parser.ParseFile(token.NewFileSet(), test, nil, parser.PackageClauseOnly)
			return err == nil && f.Name.Name == pkg
		})
	}
	return false
}

func filesOf(pass *analysis.Pass) map[string]*token.File {
	files := map[string]*token.File{}
	for _, f := range pass.Files {
		file := pass.Fset.File(f.FileStart)
		files[file.Name()] = file
	}
	return files
}
