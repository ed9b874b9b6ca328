/**
 * The texts of a release: manifests, definitions and templates under the names that the procedure of an upgrade types, and
 * the chart as a repository of Helm has it. Takes about a second.
 */
import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { identity } from "../../src/identity.ts";
import { chartFiles } from "../../src/release/chart/files.ts";
import { manifestFiles } from "../../src/release/manifests/manifest-files.ts";
import { releasedFiles, type Texts } from "../../src/release/released-files.ts";
import { VERSION } from "../../src/version.ts";
import { formatYaml } from "../../src/yaml.ts";
import { temporaryDirectory } from "../../test/support/temporary-directory.ts";
import { reproducibleTar } from "../reproducible-tar.ts";

/** Those that are applied with kubectl; they are not in git. */
export function writeManifests(directory: string): void {
  writeTexts(directory, manifestFiles());
}

/** `time`: seconds since 1970, of the files in the chart. */
export async function writeReleaseFiles(directory: string, time: number): Promise<void> {
  writeTexts(directory, releasedFiles());
  const archive = `${identity.operator}-${VERSION.replace(/^v/, "")}.tgz`;
  const chart = await packedChart(time);
  writeFile(join(directory, archive), chart);
  writeFile(join(directory, "index.yaml"), repositoryIndex(archive, chart, time));
}

/** Whatever the umask was, a web server of another user can read the directory, and everything in it. */
export function setModes(directory: string): void {
  chmodSync(directory, 0o755);
  for (const name of readdirSync(directory, { recursive: true, encoding: "utf8" })) {
    const path = join(directory, name);
    const { mode } = statSync(path);
    chmodSync(path, (mode & 0o100) === 0 ? 0o644 : 0o755);
  }
}

/** As `helm package` packs it: all files below the name of the chart. */
async function packedChart(time: number): Promise<Uint8Array<ArrayBuffer>> {
  const staging = temporaryDirectory("chart");
  try {
    writeTexts(join(staging.path, identity.operator), chartFiles());
    const modes = "--mode=u=rwX,go=rX";
    return Bun.gzipSync(await reproducibleTar(staging.path, [modes, identity.operator], time), { level: 9 });
  } finally {
    staging.remove();
  }
}

/** `helm repo add` reads it; the address of the chart is relative, so that a mirror needs no change. */
function repositoryIndex(archive: string, chart: Uint8Array<ArrayBuffer>, time: number): string {
  const created = new Date(time * 1000).toISOString();
  const metadata = Bun.YAML.parse(chartFiles()["Chart.yaml"]?.() ?? "") as Readonly<Record<string, unknown>>;
  const digest = new Bun.CryptoHasher("sha256").update(chart).digest("hex");
  return formatYaml({
    apiVersion: "v1",
    entries: { [identity.operator]: [{ ...metadata, created, digest, urls: [archive] }] },
    generated: created,
  });
}

function writeTexts(directory: string, texts: Texts): void {
  for (const [name, text] of Object.entries(texts)) writeFile(join(directory, name), text());
}

function writeFile(path: string, content: string | Uint8Array): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content, { mode: 0o644 });
}
