# The front door. Every target works on a fresh clone: it installs what it needs.
SHELL := /bin/bash
MACHINE := $(shell uname -m | sed 's/x86_64/x64/;s/arm64/aarch64/')
BUN := node_modules/@oven/bun-linux-$(MACHINE)/bin/bun
IDENTITY ?= identity/vendor.json
OUT ?= dist
PREFIX ?= /usr/local
CNI_BIN_DIR ?= /opt/cni/bin
WITH_IDENTITY = IDENTITY="$(IDENTITY)" $(BUN) --preload ./scripts/use-identity.ts

.PHONY: build dist install uninstall deb image release unit test bare lint fmt generate bench soak vm simulate demo screenshots cluster cluster-down clean

build: node_modules/.installed ## the executable and its names, in $(OUT)/bin
	@$(BUN) scripts/build.ts --identity "$(IDENTITY)" --out "$(OUT)"

dist: node_modules/.installed ## linux x64 and arm64
	@$(BUN) scripts/build.ts --identity "$(IDENTITY)" --out "$(OUT)" --all-targets

install: build ## executable, names, unit, manual pages and example configs, below $(DESTDIR); EXISTING=backup keeps the plugins of others aside
	@$(WITH_IDENTITY) scripts/install.ts $(INSTALLATION) --out "$(OUT)" --existing "$(or $(EXISTING),refuse)"

uninstall: node_modules/.installed ## removes what `make install` wrote, with the same DESTDIR and PREFIX, and the network's tables; FORCE=1 although containers use it
	@$(WITH_IDENTITY) scripts/install.ts --uninstall $(INSTALLATION) $(if $(filter-out 0,$(FORCE)),--force)

INSTALLATION = --destdir "$(DESTDIR)" --prefix "$(PREFIX)" --cni-bin-dir "$(CNI_BIN_DIR)"

deb: build ## the Debian package, in $(OUT)
	@$(WITH_IDENTITY) scripts/deb.ts --out "$(OUT)" --maintainer "$(MAINTAINER)"

image: dist ## the OCI images for x64 and arm64, in $(OUT)/image-*.tar: without a container engine, reproducible
	@$(BUN) scripts/image.ts --identity "$(IDENTITY)" --out "$(OUT)"

# Systems of continuous integration set a variable of this name.
TYPED_ARTIFACTS = $(if $(filter command,$(firstword $(origin ARTIFACTS))),$(ARTIFACTS))

release: $(if $(filter all,$(TYPED_ARTIFACTS)),dist,node_modules/.installed) ## the manifests, in $(OUT)/manifests; ARTIFACTS=all: everything that is downloaded, also chart, tools, packages and images for both architectures, SBOM and checksums, in $(OUT)/release
	@$(WITH_IDENTITY) scripts/release.ts --out "$(OUT)" --artifacts "$(TYPED_ARTIFACTS)" --maintainer "$(MAINTAINER)"

lint: node_modules/.installed ## the one gate: format, lint, types, layers, unused code, generated docs
	@$(BUN) scripts/lint.ts

fmt: node_modules/.installed ## format every file and write the generated docs anew
	@$(BUN) --bun node_modules/.bin/biome check --write --log-level=warn .
	@$(BUN) scripts/docs.ts --write

generate: node_modules/.installed ## write the generated files that are in git: docs pages and deploy/; with IDENTITY=other.json those of deploy/ into $(OUT)
	@$(WITH_IDENTITY) scripts/docs.ts $(GENERATED)

GENERATED = $(if $(filter identity/vendor.json,$(IDENTITY)),--write,--deploy "$(OUT)")

unit: node_modules/.installed ## lint and the tests beside their sources: without root, servers or a build, in two minutes or so
	@$(BUN) scripts/unit.ts

test: node_modules/.installed ## lint, then every test; the last line holds the counts. T=path-or-word: one file, folder or title, with what it needs
	@$(BUN) scripts/test.ts $(if $(T),"$(T)")

bare: node_modules/.installed ## demo, package and tests of a fresh clone on a bare Debian in a folder, with a random host name, booted minutes ago; as root; an hour or so, since Kubernetes is built there too
	@$(BUN) scripts/bare.ts

soak: node_modules/.installed ## the long proofs at full size, an hour or so; SOAK=word chooses among them
	@$(BUN) scripts/soak.ts $(SOAK)

vm: node_modules/.installed ## the product in virtual machines with Debian 12's and 13's kernels, without hardware help, as root; a part of soak
	@$(BUN) scripts/soak.ts test/vm/

simulate: node_modules/.installed ## a whole cluster in one process: a hundred seeds; SEED=7 or SCRIPT=file.json plays one, SCENARIO=upgrade SEED=6 the allocators, controllers, operator or upgrade, TRACE=1 shows what happens, SAVE=file.json stores it shrunk
	@$(BUN) sim/main.ts $(if $(SEED),--seed "$(SEED)") $(if $(SCRIPT),--script "$(SCRIPT)") $(if $(SCENARIO),--scenario "$(SCENARIO)") $(if $(SEEDS),--seeds "$(SEEDS)") \
	  $(if $(MINUTES),--minutes "$(MINUTES)") $(if $(TRACE),--trace) $(if $(SAVE),--save "$(SAVE)")

demo: build ## the product at work on a private host, as root; DATASTORE=etcd on a real etcd; CLUSTER=1 on two nodes of a real Kubernetes; CONSOLE=1 shows the console with live traffic until Ctrl-C, also with CLUSTER=1
	@$(BUN) scripts/demo.ts $(if $(filter-out 0,$(CLUSTER)),--cluster) $(if $(filter-out 0,$(CONSOLE)),--console) --datastore "$(DATASTORE)"

screenshots: node_modules/.installed ## a picture of each view of the console, in docs/images, by a real browser
	@$(BUN) scripts/screenshots.ts

cluster: build ## a real Kubernetes with the network on private hosts, kept, as root: prints how to use kubectl and vendorctl on it; again: puts this build onto its nodes; DATASTORE=kubernetes or etcd, NODES=1 to 5
	@$(BUN) scripts/cluster.ts up --datastore "$(DATASTORE)" --nodes "$(NODES)"

cluster-down: node_modules/.installed ## removes what `make cluster` keeps
	@$(BUN) scripts/cluster.ts down

bench: node_modules/.installed ## side by side with the peers, or with RELEASE=commit of this repository; prints ratios
	@RELEASE="$(RELEASE)" $(BUN) scripts/bench.ts $(BENCH)

clean:
	@if [ -e dist/cluster ]; then $(MAKE) --no-print-directory cluster-down; fi
	rm -rf dist node_modules

# The pinned Bun comes with the packages, so npm (or any bun) is all that must be there.
# Not `npm ci`: it demands entries for the platforms of optional packages that a mirror may not carry.
node_modules/.installed: package.json package-lock.json
	@if command -v npm >/dev/null; then npm install --no-save --no-audit --no-fund --loglevel=error; \
	elif command -v bun >/dev/null; then bun install --no-save --silent; \
	else echo "make: npm or bun is needed to fetch the pinned packages; install nodejs+npm" >&2; exit 1; fi
	@touch $@
