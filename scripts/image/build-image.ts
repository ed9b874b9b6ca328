/**
 * The image of the product:
 *
 *   layer 1   BIRD, the C library and the others that it needs, authorities: files of Debian's packages. The same for
 *             every release that uses the same packages, so a node that is upgraded does not download it again.
 *   layer 2   /usr/bin/vendor, and links to it for all other program names
 */
import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { programNames } from "../../src/bin/programs.ts";
import type { Identity } from "../../src/identity.ts";
import { temporaryDirectory } from "../../test/support/temporary-directory.ts";
import { hasSetIdBit, makeDirectories } from "../install/files.ts";
import { Refused } from "../install/install.ts";
import { directoriesOf } from "../install/record.ts";
import { run } from "../run.ts";
import { type ImageArchitecture, writeImageArchive } from "./archive.ts";
import {
  AUTHORITIES,
  AUTHORITIES_FILE,
  DIRECTORIES,
  LINKS,
  LOADER_LINKS,
  linkInImage,
  pathInImage,
  TEXTS,
} from "./base-files.ts";
import { downloadPackage } from "./download.ts";
import { IMAGE_PACKAGES, PACKAGES_TIME } from "./packages.ts";

export interface ImageRequest {
  readonly names: Identity;
  /** With the "v" of a release: the tag of the image. */
  readonly version: string;
  readonly architecture: ImageArchitecture;
  readonly executable: string;
  /** Seconds since 1970: the time of the executable and of the image. */
  readonly time: number;
  readonly compressionLevel: number;
  /** The file to write. */
  readonly archive: string;
}

export function imageName(names: Identity, version: string): string {
  return `${names.imageRegistry}${names.product}:${version}`;
}

/** As the directories of `make dist` name them, with the architecture of the image. */
export const IMAGE_TARGETS = [
  ["x64", "amd64"],
  ["arm64", "arm64"],
] as const;

/** The file that `make image` writes. */
export function imageArchive(out: string, target: (typeof IMAGE_TARGETS)[number][0]): string {
  return join(out, `image-${target}.tar`);
}

export async function buildImage(request: ImageRequest): Promise<void> {
  const { names, version, architecture, executable, time, compressionLevel, archive } = request;
  if (hasSetIdBit(executable)) throw new Refused(`Cannot package "${executable}": it has a setuid or setgid bit`);
  const staging = temporaryDirectory("image");
  try {
    const [base, product] = [join(staging.path, "base"), join(staging.path, "product")];
    await fillBase(base, { staging: staging.path, architecture });
    fillProduct(product, names, executable);
    await writeImageArchive({
      name: imageName(names, version),
      architecture,
      layers: [
        { directory: base, time: PACKAGES_TIME },
        { directory: product, time },
      ],
      command: [names.adminTool, "--help"],
      path: "/usr/sbin:/usr/bin",
      labels: { "org.opencontainers.image.title": names.product, "org.opencontainers.image.version": version },
      time,
      compressionLevel,
      archive,
    });
  } finally {
    staging.remove();
  }
}

interface BaseRequest extends Pick<ImageRequest, "architecture"> {
  readonly staging: string;
}

async function fillBase(root: string, { staging, architecture }: BaseRequest): Promise<void> {
  makeDirectories(root, ["/", "tmp", ...DIRECTORIES]);
  chmodSync(join(root, "tmp"), 0o1777);
  for (const [path, target] of Object.entries({ ...LINKS, ...LOADER_LINKS[architecture] }))
    symlinkSync(target, join(root, path));
  for (const [path, text] of Object.entries(TEXTS)) writeText(join(root, path), text);
  for (const each of IMAGE_PACKAGES[architecture]) {
    const file = await downloadPackage(each);
    const unpacked = join(staging, each.name);
    await must(["dpkg-deb", "--extract", file, unpacked]);
    keepFiles(unpacked, root);
    // Where scanners for known vulnerabilities look for the packages of an image without dpkg.
    writeText(join(root, "var/lib/dpkg/status.d", each.name), `${await must(["dpkg-deb", "--field", file])}\n`);
    keepAuthorities(join(unpacked, AUTHORITIES), join(root, AUTHORITIES_FILE));
  }
}

function keepFiles(unpacked: string, root: string): void {
  const files = readdirSync(unpacked, { recursive: true, encoding: "utf8" });
  for (const file of files) {
    const kept = pathInImage(file);
    const status = lstatSync(join(unpacked, file));
    if (kept === undefined || status.isDirectory()) continue;
    makeDirectories(root, directoriesOf([kept]));
    if (!status.isSymbolicLink()) renameSync(join(unpacked, file), join(root, kept));
    else symlinkSync(linkInImage(kept, readlinkSync(join(unpacked, file))), join(root, kept));
  }
}

function keepAuthorities(folder: string, file: string): void {
  if (!existsSync(folder)) return;
  const names = readdirSync(folder).sort();
  writeText(file, names.map((name) => readFileSync(join(folder, name), "utf8")).join(""));
}

function fillProduct(root: string, names: Identity, executable: string): void {
  makeDirectories(root, ["/", "usr", "usr/bin"]);
  const file = join(root, "usr/bin", names.product);
  copyFileSync(executable, file);
  chmodSync(file, 0o755);
  const others = Object.values(programNames(names)).filter((name) => name !== names.product);
  for (const name of others) symlinkSync(names.product, join(root, "usr/bin", name));
}

function writeText(path: string, text: string): void {
  writeFileSync(path, text);
  chmodSync(path, 0o644);
}

async function must(command: readonly string[]): Promise<string> {
  const { code, output } = await run(command);
  if (code !== 0) throw new Refused(`${command.join(" ")}: ${output}`);
  return output;
}
