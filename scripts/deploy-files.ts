/** All files of `deploy/`, by their names there: what an installation puts on a node or in a cluster. */

import { installedListName } from "../src/config/installed-network-list.ts";
import { identity } from "../src/identity.ts";
import { admissionFiles } from "../src/release/admission/admission-files.ts";
import { alertsManifest, alertsName } from "../src/release/alerts.ts";
import { chartFiles } from "../src/release/chart/files.ts";
import { crdFiles } from "../src/release/crds/definitions.ts";
import { manifestFiles } from "../src/release/manifests/manifest-files.ts";
import { hostAccountsManifest, hostAccountsName, roleManifest, roleName } from "../src/release/roles/role-files.ts";
import { nodeService } from "./docs/node-service.ts";
import { CNI_BIN_DIRECTORY, networkListText } from "./install/layout.ts";
import { alpFiles } from "./mesh-templates.ts";

type Texts = Readonly<Record<string, () => string>>;

const ROLES = ["etcd", "kubernetes", "node-kubernetes", "controllers-etcd", "controllers-kubernetes"] as const;
const DATASTORES = ["etcd", "kubernetes"] as const;

export function deployFiles(): Texts {
  return {
    ...manifestFiles(),
    ...alpFiles(),
    ...below("chart", chartFiles()),
    ...below("admission", admissionFiles()),
    ...below("crds", Object.fromEntries([...crdFiles()].map(([name, text]) => [name, () => text]))),
    ...below("rbac", roleFiles()),
    [`alerts/${alertsName(identity)}.yaml`]: () => alertsManifest(identity),
    [`${identity.nodeAgent}.service`]: () => nodeService(identity, CNI_BIN_DIRECTORY),
    [installedListName("etcd", identity)]: () => networkListText("etcd", identity),
    [installedListName("embedded", identity)]: () => networkListText("embedded", identity),
  };
}

function roleFiles(): Texts {
  return Object.fromEntries([
    ...ROLES.map((role) => [`${roleName(role, identity)}.yaml`, () => roleManifest(role, identity)]),
    ...DATASTORES.map((each) => [
      `${hostAccountsName(each, identity)}.yaml`,
      () => hostAccountsManifest(each, identity),
    ]),
  ]);
}

function below(folder: string, files: Texts): Texts {
  return Object.fromEntries(Object.entries(files).map(([name, text]) => [`${folder}/${name}`, text]));
}
