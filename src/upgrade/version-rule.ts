/** Which releases can be upgraded to which (rule 2 of the spec), and on which releases of the orchestrator. Pure. */
import { identity } from "../identity.ts";
import { compareReleases, isRelease } from "../model/release.ts";
import type { Facts, Obstacle } from "./facts.ts";

/** The earliest release that an upgrade may start from. */
const FIRST = "v3.15.0";
/** The definitions of the product's resources use functions that exist since then. */
const FIRST_WITH_DEFINITIONS = "v1.31.0";
/** A manifest for etcd has no definitions; server-side apply is older. */
const FIRST_WITH_ETCD = "v1.22.0";
/** `admissionregistration.k8s.io/v1` has ValidatingAdmissionPolicy since then. */
export const FIRST_WITH_POLICIES = "v1.30.0";

type Asked = Pick<Facts, "version" | "target" | "orchestratorVersion"> & Partial<Pick<Facts, "method" | "datastore">>;

/** Nothing if the upgrade is allowed, or everything has the release already. */
export function versionObstacles({
  version,
  target,
  orchestratorVersion,
  method,
  datastore,
}: Asked): readonly Obstacle[] {
  const isWithoutDefinitions = method?.kind === "manifest" && datastore === "etcd";
  const first = isWithoutDefinitions ? FIRST_WITH_ETCD : FIRST_WITH_DEFINITIONS;
  return [...rangeObstacles(version, target), ...orchestratorObstacles(orchestratorVersion, first)];
}

function rangeObstacles(version: string, target: string): readonly Obstacle[] {
  if (!isRelease(version) || !isRelease(target)) {
    const [unknown, what] = isRelease(version) ? [target, "this tool"] : [version, "the cluster"];
    return [
      {
        message: `the release of ${what}, "${unknown}", is not a version`,
        remedy: isRelease(version)
          ? `use a released ${identity.adminTool}`
          : "add --from-version VERSION, such as v3.26.1",
      },
    ];
  }
  if (compareReleases(version, target) > 0) {
    return [
      {
        message: `the cluster has ${version}, which is later than ${target}: a downgrade is not possible`,
        remedy: `use ${identity.adminTool} ${version} or later`,
      },
    ];
  }
  if (compareReleases(version, `${FIRST}-0`) >= 0) return [];
  return [
    {
      message: `the cluster has ${version}: an upgrade to ${target} starts from ${FIRST} or later`,
      remedy: `upgrade to a release between ${FIRST} and ${target} first, as its own documentation says`,
    },
  ];
}

/** Of a release of the orchestrator; one that cannot be read is not. */
export function isBefore(version: string, first: string): boolean {
  const plain = version.replace(/[+-].*$/, "");
  return isRelease(plain) && compareReleases(plain, first) < 0;
}

/** A version that cannot be read blocks nothing. */
function orchestratorObstacles(version: string, first: string): readonly Obstacle[] {
  if (!isBefore(version, first)) return [];
  return [
    {
      message: `the orchestrator has ${version}: this release needs ${first} or later`,
      remedy: "upgrade the orchestrator first",
    },
  ];
}
