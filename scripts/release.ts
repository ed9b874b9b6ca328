/**
 * `make release`: the manifests, which are not in git, in `<out>/manifests`. A second, and needs no executables.
 *
 * `make release ARTIFACTS=all`: also everything that an installation or an upgrade is typed against, in
 * `<out>/release/<version>`, which is served at the address of the identity's `releaseBase`:
 *
 *   *.yaml crds/ alp/ admission/ alerts/ rbac/   manifests, definitions, templates of the mesh
 *   vendor-operator-3.29.0.tgz index.yaml        the chart, and the index by which the directory is a repository of Helm
 *   bin/linux-<architecture>/vendorctl           the admin tool
 *   packages/ images/                            Debian packages and OCI archives, for amd64 and arm64
 *   sbom.spdx.json SHA256SUMS
 *
 * The same commit gives the same bytes; uncommitted files are refused, unless SOURCE_DATE_EPOCH is set. Needs the executables
 * of `make dist`.
 *   bun --preload ./scripts/use-identity.ts scripts/release.ts --out dist --artifacts all
 */
import { copyFileSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import lock from "../package-lock.json";
import { identity } from "../src/identity.ts";
import { VERSION } from "../src/version.ts";
import { buildPackage } from "./deb/build-package.ts";
import { buildImage, IMAGE_TARGETS } from "./image/build-image.ts";
import { IMAGE_PACKAGES } from "./image/packages.ts";
import { Refused } from "./install/install.ts";
import { installPrograms } from "./programs/install.ts";
import { writeChecksums } from "./release/checksums.ts";
import { manifestBase } from "./release/manifest-base.ts";
import { setModes, writeManifests, writeReleaseFiles } from "./release/manifests-and-chart.ts";
import { sbomOf } from "./release/sbom.ts";
import { sourceTime, uncommittedFiles } from "./source-time.ts";

const { values } = parseArgs({
  options: {
    out: { type: "string", default: "dist" },
    artifacts: { type: "string", default: "" },
    maintainer: { type: "string", default: "" },
  },
});

const SMALL = 9;
const { product, adminTool } = identity;

try {
  if (!["", "all"].includes(values.artifacts)) {
    throw new Refused(
      `Cannot release ARTIFACTS="${values.artifacts}": it is "all", or not given for the manifests alone`,
    );
  }
  await replaceDirectory(join(values.out, "manifests"), writeManifests);
  if (values.artifacts === "all") await releaseAll();
  else console.log("the rest of a release is written with ARTIFACTS=all");
} catch (failure) {
  if (!(failure instanceof Refused)) throw failure;
  console.error(`make: ${failure.message}`);
  process.exit(1);
}

async function releaseAll(): Promise<void> {
  await installPrograms(["dpkg-deb", "tar"]);
  refuseUncommitted(await uncommittedFiles());
  const time = await sourceTime();
  const directory = join(values.out, "release", VERSION);
  await replaceDirectory(directory, async (unfinished) => {
    await writeReleaseFiles(unfinished, time);
    const sbom = sbomOf({ names: identity, version: VERSION, time, lock, debian: IMAGE_PACKAGES });
    writeFileSync(join(unfinished, "sbom.spdx.json"), `${JSON.stringify(sbom, undefined, 2)}\n`);
    for (const [target, architecture] of IMAGE_TARGETS) {
      const executable = join(values.out, `linux-${target}`, "bin", product);
      await addExecutable(executable, { directory: unfinished, architecture, time });
      console.log(`built the tool, the package and the image for linux/${architecture}`);
    }
    writeChecksums(unfinished);
  });
  console.log(`to be served at ${manifestBase(identity, VERSION)}`);
}

/** Either the former files are in the directory, or all new ones. */
async function replaceDirectory(directory: string, write: (unfinished: string) => void | Promise<void>): Promise<void> {
  const unfinished = `${directory}.new`;
  rmSync(unfinished, { recursive: true, force: true });
  await write(unfinished);
  setModes(unfinished);
  rmSync(directory, { recursive: true, force: true });
  renameSync(unfinished, directory);
  const count = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((each) => each.isFile()).length;
  console.log(`built ${directory}: ${count} files`);
}

/** What is built then is not what the commit says. */
function refuseUncommitted(files: readonly string[]): void {
  if (files.length === 0) return;
  const shown = files.slice(0, 5).join(", ");
  throw new Refused(
    `Cannot release: ${files.length} files of the work tree are not committed (${shown}); commit or remove them, or set SOURCE_DATE_EPOCH to release them as they are`,
  );
}

interface Build {
  readonly directory: string;
  readonly architecture: (typeof IMAGE_TARGETS)[number][1];
  readonly time: number;
}

async function addExecutable(executable: string, { directory, architecture, time }: Build): Promise<void> {
  const folder = (name: string) => madeFolder(join(directory, name));
  const bin = folder(`bin/linux-${architecture}`);
  copyFileSync(executable, join(bin, adminTool));
  await buildPackage({
    names: identity,
    version: VERSION.replace(/^v/, ""),
    architecture,
    maintainer: values.maintainer || identity.maintainer,
    executable,
    folder: folder("packages"),
    time,
  });
  await buildImage({
    names: identity,
    version: VERSION,
    architecture,
    executable,
    time,
    compressionLevel: SMALL,
    archive: join(folder("images"), `${product}-${VERSION}-linux-${architecture}.tar`),
  });
}

function madeFolder(path: string): string {
  mkdirSync(path, { recursive: true });
  return path;
}
