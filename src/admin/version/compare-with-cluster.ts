/** Whether a tool may work on a cluster: never if it is older, since it does not know what later releases store. Pure. */
import { identity } from "../../identity.ts";
import { compareReleases, isRelease } from "../../model/release.ts";
import type { Option } from "../main/option.ts";

export type Comparison =
  | { readonly kind: "same" }
  | { readonly kind: "tool is older"; readonly message: string; readonly remedy: string }
  | { readonly kind: "tool is newer"; readonly message: string };

/** Builds between releases count as the release; what is not a release is not compared. */
export function compareWithCluster(tool: string, cluster: string | undefined): Comparison {
  if (cluster === undefined || !isRelease(cluster) || !isRelease(tool)) return { kind: "same" };
  const difference = compareReleases(withoutStage(tool), withoutStage(cluster));
  const name = identity.adminTool;
  if (difference < 0) {
    return {
      kind: "tool is older",
      message: `Cannot work on this cluster: it has ${cluster}, and this ${name} is ${tool}`,
      remedy: `use ${name} ${cluster} or later, or add --${ALLOW_MISMATCH}`,
    };
  }
  const message = `this ${name} is ${tool}, and the cluster has ${cluster}`;
  return difference > 0 ? { kind: "tool is newer", message } : { kind: "same" };
}

export const ALLOW_MISMATCH = "allow-version-mismatch";

export const MISMATCH_OPTION: Option = {
  name: ALLOW_MISMATCH,
  summary: "Work on a cluster of another release than this tool's",
};

function withoutStage(version: string): string {
  return version.replace(/[-+].*$/, "");
}
