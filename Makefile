# Everything is built from Go modules; nothing is fetched from elsewhere.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# Where `make up` keeps its state and `make down` finds it.
DIR ?= .up
# What `make test` runs.
PACKAGES ?= ./...
# How often `make bench` measures everything; how many rounds `make chaos` has.
ROUNDS ?= 5
# What the faults of `make chaos` follow from.
SEED ?= $(shell date +%s)
# What `make race` runs: all but test/, whose servers it would not check and whose waiting it
# would slow down.
RACE_PACKAGES ?= $(shell go list -e ./... | grep -v '/etcdmanager/test\(/\|$$\)')
# What `make generate` writes.
GENERATED := api/v1alpha1/zz_generated.deepcopy.go config/crd config/rbac/role.yaml

##@ Run it

.PHONY: demo
demo: build ## Show a fleet being founded, hurt and healed, on this machine
	hack/testbin.sh etcd-3.7.3 kube-apiserver
	bin/etcdmanager demo --bin-dir bin/testbin

.PHONY: up
up: build ## Start a management API and the controller on this machine, state in DIR
	hack/testbin.sh etcd-3.7.3 kube-apiserver kubectl
	bin/etcdmanager up --dir $(DIR) --bin-dir bin/testbin

.PHONY: down
down: build ## Stop and remove what `make up` made in DIR
	bin/etcdmanager down --dir $(DIR)

##@ Build

.PHONY: build
build: ## Build bin/etcdmanager
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/etcdmanager ./cmd/etcdmanager

.PHONY: generate
generate: ## Write deep copies, CRDs and the RBAC role from the Go types
	@hack/tools.sh controller-gen
	rm -f config/crd/etcdmanager.io_*.yaml
	bin/tools/controller-gen object crd paths=./api/... output:crd:dir=config/crd
	bin/tools/controller-gen rbac:roleName=etcdmanager paths=./etcdmanager/controllers/... output:rbac:dir=config/rbac

.PHONY: testbin
testbin: ## Build the servers that tests run: etcd 3.5, 3.6, 3.7 and kube-apiserver
	@hack/testbin.sh

.PHONY: tools
tools: ## Build the linter, the generator and benchstat into bin/tools
	@hack/tools.sh

.PHONY: clean
clean: ## Remove bin/; what was built stays in the cache (ETCDMANAGER_CACHE)
	rm -rf bin

##@ Check

.PHONY: test
test: testbin build ## Run all tests, or those of PACKAGES
	hack/test.sh $(PACKAGES)

.PHONY: race
race: testbin build ## Run the tests of RACE_PACKAGES under the race detector
	hack/test.sh --race $(RACE_PACKAGES)

.PHONY: bench
bench: ## Measure an EtcdCluster beside plain etcd, ROUNDS times; fail if it is too slow
	@hack/testbin.sh etcd-3.7.3 kube-apiserver
	go test -run '^$$' -bench . -benchtime 1x -timeout 60m ./test/bench -rounds $(ROUNDS)

.PHONY: explore
explore: ## Explore STATES states of the model, and RUNS lives at random
	go test ./etcdmanager/sim -run 'EveryReachable|RandomLives' -v -count 1 -timeout 120m -args -explore.states=$(or $(STATES),10000000) -explore.runs=$(or $(RUNS),20000)

.PHONY: chaos
chaos: ## Hurt a cluster ROUNDS times at random, while clients write; the faults follow from SEED
	@hack/testbin.sh etcd-3.7.3 kube-apiserver
	go test -count=1 -run '^TestChaos$$' -v -timeout $$((20 + 8 * $(ROUNDS)))m ./test/chaos -rounds $(ROUNDS) -seed $(SEED)

.PHONY: lint
lint: ## Lint, and prove that the layering rules bite
	@hack/tools.sh golangci-lint
	hack/lint-selftest.sh
	go vet ./...
	bin/tools/golangci-lint run --allow-parallel-runners ./...

.PHONY: check-generated
check-generated: generate ## Fail when generated files differ from what is committed
	@changed=$$(git status --porcelain -- $(GENERATED)); \
	if [ -n "$$changed" ]; then \
		echo "generated files are not committed as generated; run make generate and commit:"; \
		echo "$$changed"; git --no-pager diff --stat -- $(GENERATED); exit 1; \
	fi

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
