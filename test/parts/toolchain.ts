/**
 * The Go that builds parts where none is installed that is new enough: the module `golang.org/toolchain`, which any older Go
 * downloads as it downloads every module, from the module proxy that it is configured with. A `go.sum` beside the request
 * holds the pinned hash, so that Go itself refuses other contents.
 *
 *   go of the machine ── go mod download ──> <cache>/go-1.26.8-amd64.new ── renamed ──> <cache>/go-1.26.8-amd64/bin/go
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Toolchain } from "./table.ts";

const MODULE = "golang.org/toolchain";
const ARCHITECTURES: Readonly<Record<string, keyof Toolchain["sums"]>> = { x64: "amd64", arm64: "arm64" };

/** Undefined if there is none for this machine. */
export function toolchainArchitecture(): keyof Toolchain["sums"] | undefined {
  return ARCHITECTURES[process.arch];
}

/** What `go version` of the toolchain prints: known before it is fetched. */
export function versionText({ version }: Toolchain): string {
  return `go version go${version} linux/${toolchainArchitecture()}\n`;
}

export function toolchainDirectory(cache: string, { version }: Toolchain): string {
  return join(cache, `go-${version}-${toolchainArchitecture()}`);
}

/** Why it cannot be fetched; undefined if it can, or if it was. */
export function toolchainProblem(cache: string, toolchain: Toolchain): string | undefined {
  const { version } = toolchain;
  if (toolchainArchitecture() === undefined) return `needs Go ${version} to be built`;
  if (existsSync(toolchainDirectory(cache, toolchain)) || Bun.which("go") !== null) return undefined;
  return `needs Go to be built: any release, which fetches Go ${version} (apt-get install golang-go)`;
}

/**
 * The request: a module that needs only the toolchain, and the hashes of that and of its own go.mod. Pure.
 * `architecture`: as Go names it.
 */
export function toolchainRequest({ version, sums, goModSum }: Toolchain, architecture: keyof Toolchain["sums"]) {
  const wanted = `${MODULE} v0.0.1-go${version}.linux-${architecture}`;
  return {
    "go.mod": `module parts.invalid/toolchain\n\ngo 1.17\n\nrequire ${wanted}\n`,
    "go.sum": `${wanted} ${sums[architecture]}\n${wanted}/go.mod ${goModSum}\n`,
  };
}

// Modules have no executable files, and none has a go.mod below its root: what Go itself does with a toolchain that it fetches.
const SCRIPT = `
  set -e
  [ -d "$final" ] && exit 0
  chmod -R u+w "$final".new 2>/dev/null || true
  rm -rf "$final".new && mkdir -p "$final".new/request
  cd "$final".new/request
  printf %s "$goMod" >go.mod
  printf %s "$goSum" >go.sum
  go mod download
  mv ../modules/${MODULE}@* ../go
  cd ../go
  chmod -R u+w .
  chmod 755 bin/* $(find pkg/tool -type f)
  mv src/_go.mod src/go.mod
  mv "$final".new/go "$final"
  rm -rf "$final".new`;

/** Fetches it if it is not there yet; returns the reason if that fails. Concurrent runs wait for each other. */
export async function fetchToolchain(cache: string, toolchain: Toolchain): Promise<string | undefined> {
  const architecture = toolchainArchitecture();
  const directory = toolchainDirectory(cache, toolchain);
  if (existsSync(directory)) return undefined;
  if (architecture === undefined) return toolchainProblem(cache, toolchain);
  const request = toolchainRequest(toolchain, architecture);
  const child = Bun.spawn(["flock", `${directory}.lock`, "sh", "-c", SCRIPT], {
    env: {
      ...process.env,
      final: directory,
      goMod: request["go.mod"],
      goSum: request["go.sum"],
      GOMODCACHE: `${directory}.new/modules`,
      GOFLAGS: "-mod=readonly -modcacherw",
      GOTOOLCHAIN: "local",
      GOWORK: "off",
    },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  const [complaints, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  return code === 0 ? undefined : `Cannot fetch Go ${toolchain.version}: ${reasonIn(complaints)}`;
}

/** The first lines say which hash is not the pinned one; of other failures the last ones say most. Pure. */
export function reasonIn(complaints: string): string {
  const lines = complaints
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const mismatch = lines.findIndex((line) => line.includes("checksum mismatch"));
  return (mismatch < 0 ? lines.slice(-3) : lines.slice(mismatch, mismatch + 3)).join("; ");
}
