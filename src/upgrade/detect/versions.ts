/**
 * The release of every part, and the one of the cluster: the Installation's status first, then the image of the node agents.
 * What ClusterInformation says confirms it; it is written by whichever agent started last, so that it alone proves nothing. Pure.
 */
import { identity } from "../../identity.ts";
import { AGENT_VERSION_ANNOTATION } from "../../model/agent-version-annotation.ts";
import { compareReleases, isRelease } from "../../model/release.ts";
import type { PartVersion } from "../engine/facts.ts";
import { fieldsIn } from "../object-fields.ts";
import { type DetectionRequest, type Found, found, unclear } from "./detection.ts";
import type { ClusterSnapshot } from "./snapshot.ts";
import { describeWorkload, type Workload } from "./workload.ts";

interface Part extends PartVersion {
  /** "decides": all that decide must agree. "shown": the operator of an earlier release has versions of its own. */
  readonly weight: "decides" | "confirms" | "shown";
}

export interface Versions {
  readonly parts: readonly PartVersion[];
  readonly version: Found<string>;
  /** One line for each part that differs from the earliest. */
  readonly disagreements: readonly string[];
}

/** `known`: what the ledger of an upgrade that has begun says. */
export function clusterVersions(
  snapshot: ClusterSnapshot,
  { version: given }: DetectionRequest,
  known?: string,
): Versions {
  const parts = partsOf(snapshot);
  const readable = parts.filter(({ weight, version }) => weight !== "shown" && version !== undefined);
  const earliest = readable.map(({ version }) => version as string).sort(compareReleases)[0];
  const differing = readable.filter(({ version }) => version !== earliest);
  const disagreements = differing.length === 0 ? [] : readable.map(describePart);
  const shown = parts.map(({ part, version }) => ({ part, ...(version === undefined ? {} : { version }) }));
  return { parts: shown, version: decide(), disagreements };

  function decide(): Found<string> {
    if (given !== undefined) return givenVersion(given);
    if (known !== undefined) return found(known);
    if (disagreements.length > 0) {
      return unclear(
        `an earlier upgrade has not ended: ${disagreements.join(", ")}`,
        "end it or go back first; or add --from-version VERSION with the release that the cluster is upgraded from",
      );
    }
    const deciding = parts.filter(({ weight }) => weight === "decides");
    const decided = deciding.find(({ version }) => version !== undefined)?.version;
    if (decided !== undefined) return found(decided);
    const hint = earliest === undefined ? "" : `; ${readable.map(describePart).join(", ")}`;
    return unclear(
      `the release that is installed cannot be read from ${deciding.map(({ part }) => part).join(", ")}${hint}`,
      "add --from-version VERSION, such as v3.26.1",
    );
  }
}

function givenVersion(version: string): Found<string> {
  if (isRelease(version)) return found(version.startsWith("v") ? version : `v${version}`);
  return unclear(`--from-version ${version} is not a release`, "use a version such as v3.26.1");
}

function describePart({ part, version = "unknown" }: PartVersion): string {
  return `${part} has ${version}`;
}

function partsOf(snapshot: ClusterSnapshot): readonly Part[] {
  const field = `${identity.product}Version`;
  const reported = fieldsIn(snapshot.installation, "status")[field];
  const informations = [
    ["ClusterInformation default", snapshot.currentInformation],
    ["ClusterInformation default of the earlier storage", snapshot.formerInformation],
  ] as const;
  const recorded = informations.find(([, information]) => information !== undefined);
  return [
    ...(typeof reported === "string" ? [partOf("Installation default", reported, "decides")] : []),
    ...snapshot.workloads.map(workloadPart),
    ...nodeParts(snapshot),
    ...(recorded === undefined ? [] : [partOf(recorded[0], fieldsIn(recorded[1], "spec")[field], "confirms")]),
  ];
}

function partOf(part: string, version: unknown, weight: Part["weight"]): Part {
  const isKnown = typeof version === "string" && isRelease(version);
  return isKnown ? { part, version: version.startsWith("v") ? version : `v${version}`, weight } : { part, weight };
}

function workloadPart(workload: Workload): Part {
  const container = workload.containers.find(({ name }) => name === workload.name || name === identity.nodeAgent);
  const image = (container ?? workload.containers[0])?.image ?? "";
  const weight = workload.kind === "DaemonSet" ? "decides" : isOwnRelease(workload, image) ? "confirms" : "shown";
  return partOf(describeWorkload(workload), imageVersion(image), weight);
}

/** The operator of earlier releases is versioned by itself; now all parts run from one image. */
function isOwnRelease({ name }: Workload, image: string): boolean {
  return name !== identity.operator || new RegExp(`(^|/)[^/]*${identity.product}[:@]`).test(image);
}

/** What the agents of this product record when they start; one part for all nodes with the same release. */
function nodeParts({ nodes }: ClusterSnapshot): readonly Part[] {
  const byVersion = Map.groupBy(nodes, ({ annotations }) => annotations[AGENT_VERSION_ANNOTATION]);
  return [...byVersion].flatMap(([version, members]): readonly Part[] => {
    if (version === undefined) return [];
    const [first] = members;
    const name =
      members.length === 1 && first !== undefined ? `agent of Node ${first.name}` : `agents of ${members.length} Nodes`;
    return [partOf(name, version, "confirms")];
  });
}

/** `undefined` for a digest, a missing tag or a tag that is not a version: only the user knows which release that is. */
export function imageVersion(image: string): string | undefined {
  const tag = /:([^:/@]+)$/.exec(withoutDigest(image))?.[1];
  if (tag === undefined || image.includes("@") || !isRelease(tag)) return undefined;
  return tag.startsWith("v") ? tag : `v${tag}`;
}

function withoutDigest(image: string): string {
  return image.split("@")[0] ?? image;
}
