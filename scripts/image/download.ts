/**
 * Downloads the pinned packages into a cache outside the repository, with apt's own downloader: the proxies and mirrors
 * of this machine's apt settings apply. A file is used only if its hash is the pinned one.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { basename, join } from "node:path";
import { identity } from "../../src/identity.ts";
import { digestOfBytes } from "../../src/linux/file-state.ts";
import { run } from "../run.ts";
import { type DebianPackage, PACKAGES_DAY } from "./packages.ts";

/** Part of every Debian, but not in the search path. */
export const APT_HELPER = "/usr/lib/apt/apt-helper";

/** Returns the path of the package in the cache. `day`: one on which Debian had that version. */
export async function downloadPackage(wanted: DebianPackage, day = PACKAGES_DAY): Promise<string> {
  const file = join(packageCache(), `${wanted.digest.slice(0, 16)}-${basename(wanted.path)}`);
  if (existsSync(file) && digestOfBytes(readFileSync(file)) === wanted.digest) return file;

  mkdirSync(packageCache(), { recursive: true });
  const unfinished = `${file}.${process.pid}`;
  const complaints: string[] = [];
  for (const address of addressesOf(wanted.path, await aptSites(), day)) {
    const download = ["download-file", address, unfinished, `SHA256:${wanted.digest}`];
    const { code, output } = await run([APT_HELPER, "-o", "APT::Sandbox::User=root", ...download]);
    if (code === 0) {
      renameSync(unfinished, file);
      return file;
    }
    rmSync(unfinished, { force: true });
    complaints.push(output.split("\n").find((line) => line.startsWith("E:")) ?? output);
  }
  throw new Error(`Cannot download package "${wanted.name}": ${complaints.join("; ")}`);
}

function packageCache(): string {
  return join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), `${identity.product}-image`);
}

/** Where apt of this machine gets Debian's packages from. */
async function aptSites(): Promise<readonly string[]> {
  const { code, output } = await run(["apt-get", "indextargets", "--format", "$(SITE)"]);
  return code === 0 ? [...new Set(output.split("\n"))] : [];
}

export const PUBLIC_SITE = "http://deb.debian.org";
/** Has every package that Debian ever had: mirrors drop those that a newer version replaces. */
const EVERY_PACKAGE = "http://snapshot.debian.org/archive";

/** All addresses of a package, the best first. `path` begins with the archive: `debian/pool/…`. Pure. */
export function addressesOf(path: string, sites: readonly string[], day = PACKAGES_DAY): readonly string[] {
  const [archive = "", ...inArchive] = path.split("/");
  const own = sites
    .map((site) => site.replace(/\/$/, ""))
    .filter((site) => site.endsWith(`/${archive}`))
    .map((site) => [site, ...inArchive].join("/"));
  const snapshot = `${day.replaceAll("-", "")}T235959Z`;
  const everywhere = [`${PUBLIC_SITE}/${path}`, [EVERY_PACKAGE, archive, snapshot, ...inArchive].join("/")];
  return [...new Set([...own, ...everywhere])];
}
