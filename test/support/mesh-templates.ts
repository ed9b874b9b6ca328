/**
 * Real configurations of a mesh's injector, one per minor: those that the peer ships with its own sidecar, read from Go's
 * module cache and freed of that sidecar. They are there once the peer was built for a benchmark.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { MeshMinor } from "../../src/alp/mesh/mesh-minor.ts";

const MODULE = "github.com/projectcalico/calico";

/** Why they are not there; undefined if they are. */
export function meshTemplatesProblem(): string | undefined {
  const directory = templatesDirectory();
  return directory === undefined || !existsSync(directory)
    ? "needs the Go module of Calico in the module cache"
    : undefined;
}

export function realInjectorConfig(minor: MeshMinor): string {
  const path = join(templatesDirectory() ?? "", `istio-inject-configmap-${minor}.yaml`);
  const document = Bun.YAML.parse(readFileSync(path, "utf8")) as { readonly data: { readonly config: string } };
  return withoutItems(
    document.data.config,
    /^\s*- (?:name: (?:dikastes|felix-sync)|mountPath: .*dikastes|name: dikastes-sock)$/,
  );
}

function templatesDirectory(): string | undefined {
  if (Bun.which("go") === null) return undefined;
  const version = new RegExp(`^\\s*${MODULE} (\\S+)`, "m").exec(
    readFileSync(join(import.meta.dir, "../parts/calico/go.mod"), "utf8"),
  )?.[1];
  const cache = Bun.spawnSync(["go", "env", "GOMODCACHE"]).stdout.toString().trim();
  return join(cache, `${MODULE}@${version}`, "manifests/alp");
}

/** An item of a list ends where a line is indented no further than it. */
function withoutItems(text: string, isFirst: RegExp): string {
  let depth = Number.POSITIVE_INFINITY;
  const kept = text.split("\n").filter((line) => {
    const own = line.length - line.trimStart().length;
    if (line.trim() !== "" && own <= depth) depth = isFirst.test(line) ? own : Number.POSITIVE_INFINITY;
    return depth === Number.POSITIVE_INFINITY;
  });
  return kept.join("\n");
}
