/**
 * What a release consists of, as texts by file name. Pure: no file, no cluster, no clock; `scripts/` writes them, and the
 * operator and the admin tool apply the objects behind them.
 *
 *   crds/          the custom resources: columns, CEL rules and descriptions, a file for each group of kinds
 *   installation/  an Installation, checked and completed with all defaults
 *   workloads/     the objects that carry out an Installation: DaemonSet, Deployment, ConfigMaps
 *   roles/         permissions of each account
 *   admission/     policies that the API server evaluates
 *   manifests/     all of these composed to one file for each way of installation
 *   chart/         the Helm chart of the operator
 *   alerts.ts      rules for Prometheus
 *   host-files.ts  the unit and the network lists of a host
 *
 * Application layer policy adds its templates of the mesh (`src/alp/mesh`).
 */

import { meshFiles } from "../alp/mesh/mesh-files.ts";
import { type InstalledDatastore, installedListName } from "../config/installed-network-list.ts";
import { identity } from "../identity.ts";
import { VERSION } from "../version.ts";
import { admissionFiles } from "./admission/admission-files.ts";
import { alertsManifest, alertsName } from "./alerts.ts";
import { chartFiles } from "./chart/files.ts";
import { crdFiles } from "./crds/released-crds.ts";
import { CNI_BIN_DIRECTORY, networkListText, nodeService } from "./host-files.ts";
import { manifestFiles } from "./manifests/manifest-files.ts";
import { hostAccountsManifest, hostAccountsName, roleManifest, roleName } from "./roles/role-files.ts";
import { defaultImage } from "./workloads/image.ts";

export type Texts = Readonly<Record<string, () => string>>;

/** Everything that is downloaded as text: the chart is packed (`scripts/release`). */
export function releasedFiles(): Texts {
  return { ...manifestFiles(), ...parts() };
}

/** The files of `deploy/`, which are in git. The manifests are not: they repeat these. */
export function committedFiles(): Texts {
  return { ...parts(), ...below("chart", chartFiles()) };
}

function parts(): Texts {
  const datastores: readonly InstalledDatastore[] = ["etcd", "embedded"];
  return {
    ...below("alp", meshFiles(defaultImage(VERSION))),
    ...below("admission", admissionFiles()),
    ...below("crds", Object.fromEntries([...crdFiles()].map(([name, text]) => [name, () => text]))),
    ...below("rbac", roleFiles()),
    [`alerts/${alertsName(identity)}.yaml`]: () => alertsManifest(identity),
    [`${identity.nodeAgent}.service`]: () => nodeService(identity, CNI_BIN_DIRECTORY),
    ...Object.fromEntries(
      datastores.map((each) => [installedListName(each, identity), () => networkListText(each, identity)]),
    ),
  };
}

const ROLES = ["etcd", "kubernetes", "node-kubernetes", "controllers-etcd", "controllers-kubernetes"] as const;
const DATASTORES = ["etcd", "kubernetes"] as const;

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
