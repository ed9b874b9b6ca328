/**
 * Generates docs pages, and the files that an installation puts on a node or in a
 * cluster, from the code. Without `--write` it only compares, and fails if a page
 * is outdated, so that the gate keeps the docs correct. Also checks the links of
 * all pages. `--deploy DIRECTORY` writes the files of `deploy/` there instead, for
 * a product with another name (`scripts/use-identity.ts`).
 */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Glob } from "bun";
import { chartFiles } from "../src/admin/install/chart/files.ts";
import { crdFiles } from "../src/admin/install/crds/definitions.ts";
import { type InstalledDatastore, installedListName } from "../src/config/installed-network-list.ts";
import { identity } from "../src/identity.ts";
import type { RuleDatastore } from "../src/operator/roles/rules.ts";
import { admissionFiles } from "./deploy/admission.ts";
import { alertsManifest, alertsName } from "./deploy/alerts.ts";
import { alpFiles } from "./deploy/alp.ts";
import { manifestFiles } from "./deploy/manifests.ts";
import { hostAccountsManifest, hostAccountsName, type RoleDatastore, roleManifest, roleName } from "./deploy/roles.ts";
import { adminPage } from "./docs/admin-page.ts";
import { annotationsPage } from "./docs/annotations-page.ts";
import { brokenLinks } from "./docs/broken-links.ts";
import { errorsPage } from "./docs/errors-page.ts";
import { installationPage } from "./docs/installation-page.ts";
import { networkConfigPage } from "./docs/network-config-page.ts";
import { nodeService } from "./docs/node-service.ts";
import { resourcesPage } from "./docs/resources-page.ts";
import { CNI_BIN_DIRECTORY, networkListText } from "./install/layout.ts";

const PAGES: Readonly<Record<string, () => string>> = {
  ...networkListPage("etcd"),
  ...networkListPage("embedded"),
  [`deploy/${identity.nodeAgent}.service`]: () => nodeService(identity, CNI_BIN_DIRECTORY),
  ...admissionPages(),
  [`deploy/alerts/${alertsName(identity)}.yaml`]: () => alertsManifest(identity),
  ...crdPages(),
  ...manifestPages(),
  ...chartPages(),
  ...alpPages(),
  ...rolePage("etcd"),
  ...rolePage("kubernetes"),
  ...rolePage("node-kubernetes"),
  ...rolePage("controllers-etcd"),
  ...rolePage("controllers-kubernetes"),
  ...hostAccountsPage("etcd"),
  ...hostAccountsPage("kubernetes"),
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
for (const path of new Glob("deploy/{alp,crds,chart}/**/*").scanSync(".")) {
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

function networkListPage(datastore: InstalledDatastore): Readonly<Record<string, () => string>> {
  return { [`deploy/${installedListName(datastore, identity)}`]: () => networkListText(datastore, identity) };
}

function rolePage(datastore: RoleDatastore): Readonly<Record<string, () => string>> {
  return { [`deploy/rbac/${roleName(datastore, identity)}.yaml`]: () => roleManifest(datastore, identity) };
}

function hostAccountsPage(datastore: RuleDatastore): Readonly<Record<string, () => string>> {
  return {
    [`deploy/rbac/${hostAccountsName(datastore, identity)}.yaml`]: () => hostAccountsManifest(datastore, identity),
  };
}

function chartPages(): Readonly<Record<string, () => string>> {
  return Object.fromEntries(Object.entries(chartFiles()).map(([name, text]) => [`deploy/chart/${name}`, text]));
}

function alpPages(): Readonly<Record<string, () => string>> {
  return Object.fromEntries(Object.entries(alpFiles()).map(([name, text]) => [`deploy/${name}`, text]));
}

function crdPages(): Readonly<Record<string, () => string>> {
  return Object.fromEntries([...crdFiles()].map(([name, text]) => [`deploy/crds/${name}`, () => text]));
}

function admissionPages(): Readonly<Record<string, () => string>> {
  return Object.fromEntries(Object.entries(admissionFiles()).map(([name, text]) => [`deploy/admission/${name}`, text]));
}

function manifestPages(): Readonly<Record<string, () => string>> {
  return Object.fromEntries(Object.entries(manifestFiles()).map(([name, text]) => [`deploy/${name}`, text]));
}
