# Two commands do everything on a machine with Go, make and bash: `make demo` and
# `make test`, which needs a browser too. The first build compiles Kubernetes: 7 to 20 minutes on two
# cores. Later builds take seconds.

SHELL := /bin/bash
BIN := $(CURDIR)/bin
REVISION := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)

# The minor version of Kubernetes. Empty: the version in go.mod. controlplane/versions has the module files of the others.
VERSION :=
VERSIONS := 1.36 1.35
ifneq ($(VERSION),)
ifneq ($(VERSION),1.37)
OF := -$(VERSION)
MODFILE := -modfile=controlplane/versions/$(VERSION)/release.mod -tags etcd36
endif
endif
STAMP := -X github.com/stormglass/stormglass/internal/version.version=$(REVISION)
LDFLAGS = $(shell cat $(firstword $(wildcard controlplane/versions/$(VERSION)/ldflags) tools/ldflags))

.PHONY: help build loadgen controlplane flags versions features demo test check hooks lint unit planes tools browser kubelet calibrate-node calibrate diagnose-score imports man fuzz bench storms incidents panels snapshot test-snapshot images test-images test-install test-compose test-darwin podman release-tools container-runtime test-realnode clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The compiler writes no debug information: programs are stripped, and stacks do not need it.
export GOFLAGS := $(shell go env GOFLAGS 2>/dev/null) -gcflags=all=-dwarf=false

# $(call compile,PACKAGES,OUTPUT,FLAGS): compile programs and show how far it is, instead of the output of -v. A compiler lives for
# about a second: collecting garbage costs it more than memory, of which two compilers take at most 2 GiB.
compile = @echo "compiling $(1)"; set -o pipefail; \
  GOGC=off GOMEMLIMIT=1GiB go build $(3) -ldflags '-s -w $(LDFLAGS) $(STAMP)' -v -o $(BIN)/$(2) $(1) 2>&1 | $(BIN)/progress $(3) $(1)

build: $(BIN)/progress ## Build bin/loadgen and bin/controlplane
	$(if $(MODFILE),$(error use make controlplane VERSION=$(VERSION)))$(call compile,./cmd/loadgen ./cmd/controlplane)

loadgen: $(BIN)/progress ## Build bin/loadgen only (seconds: it links no Kubernetes server)
	$(call compile,./cmd/loadgen)

controlplane: $(BIN)/progress ## Build bin/controlplane only, or of an older version bin/controlplane-1.36: VERSION=1.36 (minutes, once)
	$(call compile,./cmd/controlplane,controlplane$(OF),$(MODFILE))

$(BIN)/progress: tools/progress.go
	go build -o $@ $<

flags: ## Write the table of a version's flags and feature gates: VERSION=1.36
	go test $(MODFILE) ./controlplane/internal/component -run Flags -update

versions: build ## Build the control plane of each supported version and run rollout-demo on it (half an hour, once)
	for v in $(VERSIONS); do $(MAKE) controlplane VERSION=$$v || exit 1; done
	for v in 1.37 $(VERSIONS); do $(BIN)/loadgen run rollout-demo --set controlPlane.version=$$v || exit 1; done

demo: build ## Run a small rollout on the bundled control plane and report
	$(BIN)/loadgen run rollout-demo

features: build ## Compare each feature gate, off and on, in pairs of planes (about 3 hours)
	for s in $$($(BIN)/loadgen scenarios | grep -o '^features/[A-Za-z]*'); do \
	  $(BIN)/loadgen ab $$s --a variant=off --b variant=on --metric all --looks 6 --alpha 1% || [ $$? -ne 4 ] || exit 4; done

storms: build ## Run the three full storms one after another (about 15 minutes)
	@status=0; for s in rollout-500 watch-flood node-failure-storm; do \
	  $(BIN)/loadgen run $$s || status=$$?; done; exit $$status

INCIDENTS = fd-exhaustion stacked-etcd slow-fsync scheduler-scale thundering-herd leader-changes slow-verbs watch-storm rollout-hops node-loss component-loss noisy-neighbour crd-flood \
  workloads-node-loss kms-outage token-webhook-down webhook-in-front aggregated-api-down audit-backend-blocked audit-disk-full conversion-webhook-down \
  hpa-storm cloud-throttled cloud-instances-vanish cloud-load-balancers

incidents: build ## Run every incident with its remedy, full size, and compare
	@status=0; for s in $(INCIDENTS); do $(BIN)/loadgen run $$s --variant all || status=$$?; done; \
	for s in etcd-kills etcd-restore; do $(BIN)/loadgen run $$s || status=$$?; done; exit $$status

bench: ## Compare the cost of the load engine and simulated nodes with client-go (about half an hour)
	set -o pipefail; go test ./loadgen/lab/bench -run '^$$' -bench . -benchtime 1x -count 6 -timeout 2h | tee /dev/stderr | go tool benchstat -

test: check planes ## Lint, then every test (brings up small control planes; needs a browser, see `make browser`)

check: lint unit ## Lint, then the tests that need no control plane

# Tests on control planes measure time, so these packages run one after another, after all others.
PLANES := loadgen/cli controlplane deploy/realplane loadgen/internal/realplane loadgen/testplane loadgen
# The only tests that link Kubernetes, which takes too long to compile again for the race detector.
KUBERNETES := controlplane/internal/component
# Lint has vetted the packages. A test that hangs ends long before CI's limit.
GO_TEST = go test -timeout $(LIMIT) -vet off -ldflags -s
unit: LIMIT = 20m
planes: LIMIT = 40m

unit planes: export STORMGLASS_CONTROLPLANE = $(BIN)/controlplane
unit planes: export STORMGLASS_LOADGEN = $(BIN)/loadgen
unit planes: export STORMGLASS_TOOLS = $(BIN)/tools
unit: build tools browser ## Run the tests that need no control plane, with the race detector
	GOGC=400 $(GO_TEST) -race -p 2 $$(go list ./... | grep -vE '^[^/]+/[^/]+/[^/]+/($(subst $() ,|,$(PLANES) $(KUBERNETES)))$$')
	$(GO_TEST) ./$(KUBERNETES)

# Of the tests on control planes, these run with the race detector: they load a plane, and do not measure it.
RACED := loadgen/internal/realplane loadgen/testplane

# go test reuses the results of a package while its inputs are the same. These tests also run programs, so the programs' sources
# are an input: planetest.Programs reads this checksum.
planes: export STORMGLASS_PROGRAMS = $(shell find . -type f ! -path './bin/*' ! -path './.git/*' ! -name '*_test.go' ! -name '*.md' -exec cksum {} + | sort | cksum)
planes: build tools browser ## Run the tests that start control planes
	$(GO_TEST) -p 1 $(addprefix ./,$(filter-out $(RACED),$(PLANES)))
	GOGC=400 $(GO_TEST) -race -p 1 $(addprefix ./,$(RACED))
	GOGC=400 $(GO_TEST) -race -run '^(TestPrograms|TestRunOnABundledPlane)$$' ./loadgen/cli

# The go command caches what the tool finds until the tool changes. Without paths and revision, it is the same in each checkout.
lint: ## gofmt, and the analyzers of go vet, staticcheck and errcheck; the import rules are a test
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	if [ -n "$$unformatted" ]; then echo "not gofmt-clean: $$unformatted (run gofmt -w)"; exit 1; fi
	go build -trimpath -buildvcs=false -o $(BIN)/lint ./internal/lint
	go vet -vettool=$(BIN)/lint ./...

hooks: ## Make git check the subjects of your commits
	git config core.hooksPath tools/githooks

tools: ## Build what tests of alerts/ and deploy/ run: Prometheus, promtool, pint, amtool, actionlint, Helm, jsonnet, a checker of compose files (minutes, once)
	@mkdir -p $(BIN)/tools
	go -C tools build -tags remove_all_sd -ldflags '-s -w' -o $(BIN)/tools/ tool
	go -C tools/release build -ldflags '-s -w' -o $(BIN)/tools/ github.com/rhysd/actionlint/cmd/actionlint
	go -C tools/charts build -ldflags '-s -w' -o $(BIN)/tools/ tool

browser: ## Find a Chromium, Chrome or Edge for the page tests ($STORMGLASS_BROWSER names one), or install Chromium by apt-get
	@if [ -n "$$STORMGLASS_BROWSER" ]; then exit 0; fi; \
	while read -r name; do if command -v "$$name" >/dev/null; then exit 0; fi; done <tools/browsers; \
	if command -v apt-get >/dev/null; then \
	  echo "no browser: installing the package chromium by apt-get"; \
	  sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
	  $$sudo apt-get update -qq && $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; \
	else echo "no browser: the page tests need a Chromium, Chrome or Edge on PATH, or named by STORMGLASS_BROWSER"; exit 1; fi

kubelet: ## Build bin/kubelet and bin/kube-proxy, real ones, for calibrate-node and test-realnode (minutes, once)
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w $(LDFLAGS)' -o $(BIN)/ k8s.io/kubernetes/cmd/kubelet k8s.io/kubernetes/cmd/kube-proxy

container-runtime:
	go build -o $(BIN)/calibrate ./loadgen/lab/calibrate
	@if ! $(BIN)/calibrate --check 2>/dev/null && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  echo "no container runtime: installing containerd, runc, containernetworking-plugins, iproute2 and iptables by apt-get"; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq containerd runc containernetworking-plugins iproute2 iptables >/dev/null; \
	fi
	$(BIN)/calibrate --check

calibrate-node: container-runtime controlplane kubelet ## Compare simulated nodes with a real kubelet, request by request (needs root, containerd, runc, iptables; ARGS=--help; lives of pods: ARGS=--lives)
	$(BIN)/calibrate --kubelet $(BIN)/kubelet --kube-proxy $(BIN)/kube-proxy --controlplane $(BIN)/controlplane $(ARGS)

test-realnode: container-runtime controlplane kubelet ## Test nodes and workers of a Job on real kubelets in containers (needs root, containerd and runc; `make test` does not run it)
	CGO_ENABLED=0 go build -ldflags '-s -w $(LDFLAGS) $(STAMP)' -o $(BIN)/static/loadgen ./cmd/loadgen
	go vet -tags realnode ./loadgen/internal/realnode
	STORMGLASS_CONTROLPLANE=$(BIN)/controlplane STORMGLASS_LOADGEN=$(BIN)/static/loadgen STORMGLASS_KUBELET=$(BIN)/kubelet \
	  go test -tags realnode -count 1 -timeout 25m -v ./loadgen/internal/realnode

calibrate: build ## Measure how often `loadgen ab` answers wrongly: A against A, planted regressions, a busy machine (about 6 hours, resumable; ARGS=-help)
	go run ./loadgen/lab/calibrate/pairs $(ARGS)

diagnose-score: build ## Plant faults of known kinds during storms and score the diagnosis (about 4 hours, resumable; ARGS=-help)
	go run ./loadgen/lab/calibrate/diagnosis $(ARGS)

man: build ## Write the manual pages of both programs to bin/man
	$(BIN)/loadgen man $(BIN)/man
	$(BIN)/controlplane man $(BIN)/man

imports: loadgen ## Import the example configurations of other tools: ARGS='-kube-burner DIR -perf-tests DIR -kwok DIR', checkouts
	go run ./loadgen/lab/calibrate/imports $(ARGS)

FUZZ = scenario:FuzzParse $(addprefix internal/, \
  apiclient/h2conn:FuzzFrames apiclient/h2conn:FuzzFields apiclient/protobuf:FuzzEvent \
  load/watch:FuzzJSON load/watch:FuzzProtobuf load/object:FuzzDocument load/object:FuzzProtobufMetadata node:FuzzScan \
  judge:FuzzMeasurements judge:FuzzTimeline judge:FuzzPulse judge:FuzzRun judge:FuzzAudit judge:FuzzRunDirectory auditlog:FuzzReader) ../internal/jsonscan:FuzzScanner

fuzz: ## Fuzz the scenario loader and every reader of what servers send and runs leave behind, half a minute each
	for f in $(FUZZ); do go test ./loadgen/$${f%%:*} -run '^$$' -fuzz "^$${f##*:}$$" -fuzztime 30s -fuzzminimizetime 10x || exit 1; done

panels: ## Ask every query of every dashboard of the archive of a run: make panels RUN=runs/TIME-NAME
	go run ./loadgen/internal/report/panel/panels $(RUN)

release-tools: ## Build what releases are made by: goreleaser, cyclonedx-gomod (minutes, once)
	go -C tools/release build -ldflags '-s -w' -o $(BIN)/tools/ tool

# The lists of platforms in .goreleaser.yaml, narrowed to OS and ARCH.
snapshot: release-tools ## Build what a release holds into bin/dist, unpublished and unsigned; OS=linux ARCH=amd64: of one platform
	sed $(if $(OS),-e 's/goos: .*/goos: [$(OS)]/') $(if $(ARCH),-e 's/goarch: .*/goarch: [$(ARCH)]/') -e '' .goreleaser.yaml >$(BIN)/goreleaser.yaml
	PATH=$(BIN)/tools:$$PATH $(BIN)/tools/goreleaser release --snapshot --clean --skip=sign --parallelism=1 --timeout=3h --config $(BIN)/goreleaser.yaml

test-snapshot: ## Build a snapshot for this platform and test archives, checksums, lists of modules, krew's manifest
	$(MAKE) snapshot OS=$$(go env GOOS) ARCH=$$(go env GOARCH)
	go -C tools/release test -count 1 ./dist

IMAGES := loadgen controlplane
IMAGE_ARCHS := amd64 arm64
COMMA := ,
images: ## Write images from scratch as OCI archives into bin/images; IMAGES=loadgen, IMAGE_ARCHS=amd64: less of them
	for arch in $(IMAGE_ARCHS); do for program in $(sort loadgen $(IMAGES)); do \
	  CGO_ENABLED=0 GOOS=linux GOARCH=$$arch go build -trimpath -ldflags '-s -w $(LDFLAGS) $(STAMP)' -o $(BIN)/images/linux_$$arch/$$program ./cmd/$$program || exit 1; \
	done; done
	go -C tools/release run ./images -programs $(BIN)/images -out $(BIN)/images -version $(REVISION) \
	  -created "$$(git log -1 --format=%cI 2>/dev/null || echo 1970-01-01T00:00:00Z)" -platforms $(subst $() ,$(COMMA),$(addprefix linux/,$(IMAGE_ARCHS))) $(IMAGES)

podman:
	@if ! command -v podman >/dev/null && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  echo "no podman: installing podman and runc by apt-get"; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq podman runc >/dev/null; \
	fi

test-images: build podman ## Run the images by podman, without root rights or a writable root file system, against a plane of bin/controlplane
	$(MAKE) images IMAGE_ARCHS=$$(go env GOARCH)
	$(BIN)/controlplane up --detach --dir $(BIN)/images/plane
	go -C tools/release test -count 1 -v ./images -archives $(BIN)/images -plane $(BIN)/images/plane/kubeconfigs/loadgen.kubeconfig; \
	status=$$?; $(BIN)/controlplane down --dir $(BIN)/images/plane && exit $$status

ENGINE :=
test-compose: build $(if $(ENGINE),,podman) ## Run Prometheus and Alertmanager of deploy/compose in containers until an alert fires there; not Grafana (ENGINE=containerd: not by podman)
	go vet -tags compose ./deploy/containers
	STORMGLASS_CONTROLPLANE=$(BIN)/controlplane STORMGLASS_LOADGEN=$(BIN)/loadgen \
	  go test -tags compose -count 1 -timeout 60m -v ./deploy/containers -args -programs $(BIN)/compose -engine "$(ENGINE)"

test-install: ## Install both programs by `go install MODULE@VERSION` from an archive of the working tree, and run them
	go test -count 1 -v -timeout 60m ./internal/version -run Install -compile

DARWIN_ARCH := arm64
test-darwin: ## Vet and build both programs for macOS, where nothing is run (minutes, once; DARWIN_ARCH=amd64)
	GOOS=darwin GOARCH=$(DARWIN_ARCH) go vet ./cmd/loadgen ./cmd/controlplane
	GOOS=darwin GOARCH=$(DARWIN_ARCH) go build -ldflags '-s -w' -o $(BIN)/darwin_$(DARWIN_ARCH)/ ./cmd/loadgen ./cmd/controlplane

clean: ## Remove bin/ and runs/
	rm -rf $(BIN) runs planes
