/** What a package has in /usr/share/doc: the README and the pages of `docs/` as they are, whose links work there; copyright and changelog. */
import { readFileSync } from "node:fs";
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

export function packageDocuments(packaged: Documented): readonly Entry[] {
  const folder = join("/usr/share/doc", packaged.names.product);
  const text = (path: string, content: string | Uint8Array): Entry => ({
    kind: "text",
    path: join(folder, path),
    content,
  });
  const pages = [...new Glob("docs/**/*.{md,svg}").scanSync(REPOSITORY)].sort();
  return [
    text("copyright", copyrightText(packaged, readFileSync(join(REPOSITORY, LICENSE_OF_LIBRARY), "utf8"))),
    text("changelog.gz", compressed(changelogText(packaged))),
    ...["README.md", ...pages].map((path) => text(path, readFileSync(join(REPOSITORY, path), "utf8"))),
  ];
}

/** Bun's npm package has no such file: its license has the same text. */
const LICENSE_OF_LIBRARY = "node_modules/valibot/LICENSE.md";

/** In the form of DEP 5. */
function copyrightText({ names }: Documented, license: string): string {
  const parts = compiledPackages(lock).map(
    ([name, { version = "", license: short = "unknown" }]) => ` ${name} ${version} (${short})`,
  );
  const lines = license.trim().split("\n");
  return `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: ${names.title}
Upstream-Contact: ${names.maintainer}
Source: ${names.releaseBase}

Files: *
Copyright: the authors of ${names.title}
License: not-stated
 The sources of ${names.title} do not state a license: ask the maintainer before you
 redistribute them.
Comment:
 The executable contains code of others, each under its own license:
${parts.join("\n")}

License: MIT
${lines.map((line) => (line.trim() === "" ? " ." : ` ${line}`)).join("\n")}
`;
}

/** What changed is in the history of the sources: there is one entry, of this version. */
function changelogText({ names, version, maintainer, time }: Documented): string {
  const date = new Date(time * 1000).toUTCString().replace("GMT", "+0000");
  return `${names.product} (${version}) unstable; urgency=medium

  * ${names.title} ${version}: see ${names.releaseBase}

 -- ${maintainer}  ${date}
`;
}
