/** Which releases can be upgraded to which (rule 2 of the spec), and on which releases of the orchestrator. Pure. */

import { identity } from "../../identity.ts";
import { isServerBefore } from "../../kube/server-version.ts";
import { compareReleases, isRelease } from "../../model/release.ts";
import { FIRST_SERVER } from "../../release/supported-servers.ts";
import type { Facts, Obstacle } from "../engine/facts.ts";

/** The earliest release that an upgrade may start from. */
const FIRST = "v3.15.0";

type Asked = Pick<Facts, "version" | "target" | "orchestratorVersion">;

/** Nothing if the upgrade is allowed, or everything has the release already. */
export function versionObstacles({ version, target, orchestratorVersion }: Asked): readonly Obstacle[] {
  return [...rangeObstacles(version, target), ...orchestratorObstacles(orchestratorVersion)];
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

/** A version that cannot be read blocks nothing. */
function orchestratorObstacles(version: string): readonly Obstacle[] {
  if (!isServerBefore(version, FIRST_SERVER)) return [];
  return [
    {
      message: `the orchestrator has ${version}: this release needs ${FIRST_SERVER} or later`,
      remedy: "upgrade the orchestrator first",
    },
  ];
}
