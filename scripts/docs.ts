/**
 * Generates docs pages, and the files of `deploy/`, from the code. Without `--write` it only compares, and fails if a page
 * is outdated, so that the gate keeps the docs correct. Also checks the links of
 * all pages. `--deploy DIRECTORY` writes the files of `deploy/` there instead, for
 * a product with another name (`scripts/use-identity.ts`).
 */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Glob } from "bun";
import { committedFiles } from "../src/release/released-files.ts";
import { adminPage } from "./docs/admin-page.ts";
import { annotationsPage } from "./docs/annotations-page.ts";
import { brokenLinks } from "./docs/broken-links.ts";
import { errorsPage } from "./docs/errors-page.ts";
import { installationPage } from "./docs/installation-page.ts";
import { networkConfigPage } from "./docs/network-config-page.ts";
import { resourcesPage } from "./docs/resources-page.ts";

const PAGES: Readonly<Record<string, () => string>> = {
  ...Object.fromEntries(Object.entries(committedFiles()).map(([name, text]) => [`deploy/${name}`, text])),
  "docs/annotations.md": annotationsPage,
  "docs/errors.md": errorsPage,
  "docs/installation-resource.md": installationPage,
  "docs/network-config.md": networkConfigPage,
  "docs/resources.md": resourcesPage,
  "docs/vendorctl.md": adminPage,
};

const { values } = parseArgs({ options: { write: { type: "boolean", default: false }, deploy: { type: "string" } } });
if (values.deploy !== undefined) {
  for (const [path, render] of Object.entries(PAGES)) {
    if (path.startsWith("deploy/")) await Bun.write(join(values.deploy, path), render());
  }
  process.exit(0);
}

let stale = 0;
for (const [path, render] of Object.entries(PAGES)) {
  const wanted = render();
  const file = Bun.file(path);
  const found = (await file.exists()) ? await file.text() : "";
  if (found === wanted) continue;
  if (values.write) {
    await Bun.write(path, wanted);
    continue;
  }
  stale += 1;
  console.error(`${path} is outdated: run \`make generate\` and commit it`);
}
for (const path of new Glob("deploy/**/*").scanSync(".")) {
  if (path in PAGES) continue;
  stale += 1;
  console.error(`${path} is not generated: remove it`);
}

let broken = 0;
for (const page of ["README.md", ...new Glob("docs/**/*.md").scanSync(".")]) {
  for (const link of brokenLinks(page, readFileSync(page, "utf8"), existsSync)) {
    broken += 1;
    console.error(`${page}: broken link "${link}"`);
  }
}
if (stale + broken > 0) process.exit(1);
