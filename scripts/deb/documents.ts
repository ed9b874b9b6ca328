/**
 * What a package has in /usr/share/doc: the README and the pages of `docs/` as they are, whose links work there; copyright
 * and changelog. The pages name the product as the default identity does: a package under other names goes without them.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Glob } from "bun";
import lock from "../../package-lock.json";
import type { Identity } from "../../src/identity.ts";
import type { Entry } from "../install/layout.ts";
import { compressed } from "../man/pages.ts";
import { compiledPackages } from "../release/sbom.ts";

export interface Documented {
  readonly names: Identity;
  readonly version: string;
  readonly maintainer: string;
  /** Seconds since 1970. */
  readonly time: number;
}

const REPOSITORY = join(import.meta.dir, "../..");
/** Not imported: `scripts/use-identity.ts` replaces what is imported. */
const DEFAULT_IDENTITY = join(REPOSITORY, "identity/vendor.json");

export function packageDocuments(packaged: Documented): readonly Entry[] {
  const folder = join("/usr/share/doc", packaged.names.product);
  const text = (path: string, content: string | Uint8Array): Entry => ({
    kind: "text",
    path: join(folder, path),
    content,
  });
  const pages = hasDefaultNames(packaged.names) ? ["README.md", ...pagePaths()] : [];
  return [
    text("copyright", copyrightText(packaged)),
    text("changelog.gz", compressed(changelogText(packaged))),
    ...pages.map((path) => text(path, readFileSync(join(REPOSITORY, path), "utf8"))),
  ];
}

function hasDefaultNames(names: Identity): boolean {
  return Bun.deepEquals(names, JSON.parse(readFileSync(DEFAULT_IDENTITY, "utf8")));
}

/** Those of the commit; outside a repository, as in an archive of the sources, all that are there. */
function pagePaths(): readonly string[] {
  const { exitCode, stdout } = Bun.spawnSync(["git", "-C", REPOSITORY, "ls-files", "-z", "docs"], { stderr: "ignore" });
  const paths = exitCode === 0 ? stdout.toString().split("\0") : [...new Glob("docs/**").scanSync(REPOSITORY)];
  return paths.filter((path) => /\.(md|svg)$/.test(path)).sort();
}

/** In the form of DEP 5. */
function copyrightText({ names }: Documented): string {
  const parts = compiledPackages(lock).map(([name, { version = "", license = "unknown" }]) => {
    const text = licenseTextOf(name);
    const holders = text?.match(/^Copyright .*$/gm) ?? [`see https://www.npmjs.com/package/${name}`];
    return { row: ` ${name} ${version}: ${license}, ${holders.join(", ")}`, text };
  });
  const texts = parts.flatMap(({ text }) => text ?? []);
  return `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: ${names.title}
Upstream-Contact: ${names.maintainer}
Source: ${names.releaseBase}

Files: *
Copyright: the authors of ${names.title}
License: Apache-2.0
 On Debian systems the text of the Apache License 2.0 is in
 /usr/share/common-licenses/Apache-2.0.
Comment:
 The executable contains code of others, each under its own license. Those
 that come with their license text have it below. Bun comes without one, and
 contains libraries of others: see https://bun.com/docs/project/licensing
 .
${parts.map(({ row }) => row).join("\n")}
${texts.map((each) => `${[" .", ...each.trim().split("\n").map(continued)].join("\n")}\n`).join("")}`;
}

/** A line of a field with several lines. */
function continued(line: string): string {
  return line.trim() === "" ? " ." : ` ${line}`;
}

const LICENSE_FILES = ["LICENSE", "LICENSE.md", "LICENSE.txt", "LICENCE"];

function licenseTextOf(name: string): string | undefined {
  const files = LICENSE_FILES.map((file) => join(REPOSITORY, "node_modules", name, file));
  const file = files.find((path) => existsSync(path));
  return file === undefined ? undefined : readFileSync(file, "utf8");
}

/** What changed is in the history of the sources: there is one entry, of this version. */
function changelogText({ names, version, maintainer, time }: Documented): string {
  const date = new Date(time * 1000).toUTCString().replace("GMT", "+0000");
  return `${names.product} (${version}) unstable; urgency=medium

  * ${names.title} ${version}: see ${names.releaseBase}

 -- ${maintainer}  ${date}
`;
}
