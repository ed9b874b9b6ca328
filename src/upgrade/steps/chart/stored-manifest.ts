/**
 * The manifest that Helm has stored of a release. Helm compares the next one with it: objects of kinds that the API does not
 * serve any more make it fail, and what is in the stored manifest alone is deleted. So such objects, and those that must never
 * be deleted with an upgrade, are taken out of the record.
 */
import { identity, OPERATOR_API } from "../../../identity.ts";
import type { ClusterObjects } from "../../../kube/objects.ts";
import { isObject } from "../../../model/shape.ts";
import { textAt } from "../../../release/live-object.ts";
import { groupPath } from "../../../release/object-kinds.ts";
import { FORMER_API } from "../../former-names.ts";
import { packRelease, unpackRelease } from "../../helm-releases.ts";

export interface StrippedManifest {
  readonly manifest: string;
  /** `PodSecurityPolicy vendor-operator: …` */
  readonly removed: readonly string[];
}

export type IsServed = (apiVersion: string) => boolean;

/** Pure. */
export function stripManifest(manifest: string, isServed: IsServed): StrippedManifest {
  const removed: string[] = [];
  const documents = splitManifest(manifest).filter((document) => {
    const object = parsed(document);
    const reason = object === undefined ? undefined : reasonToRemove(object, isServed);
    if (reason !== undefined) removed.push(`${object?.["kind"]} ${textAt(object, "metadata", "name")}: ${reason}`);
    return reason === undefined;
  });
  return {
    manifest: removed.length === 0 ? manifest : documents.map((document) => `---\n${document}`).join(""),
    removed,
  };
}

/** Which of the versions that the manifest uses the API serves. */
export async function servedVersions(objects: ClusterObjects, manifest: string): Promise<IsServed> {
  const versions = new Set(splitManifest(manifest).map((document) => textAt(parsed(document), "apiVersion")));
  const known = await Promise.all(
    [...versions].map(async (version) => [version, (await objects.read(groupPath(version))) !== undefined] as const),
  );
  const served = new Map(known);
  return (apiVersion) => served.get(apiVersion) ?? true;
}

/** `data.release` of the record, with another manifest. */
export function withManifest(release: string, manifest: string): string {
  const record = unpackRelease(release);
  return packRelease({ ...(isObject(record) ? record : {}), manifest });
}

const KEPT_KINDS: Readonly<Record<string, string>> = {
  Namespace: "Helm would delete it with everything in it",
  CustomResourceDefinition: "Helm would delete it with all its resources",
  APIServer: "it goes when nothing needs it any more",
  PodSecurityPolicy: "pods may be permitted by it, and the chart of this release does not have it",
};

/** A chart could have settings of the product, such as `defaultFelixConfiguration`. */
const PRODUCT_GROUPS: ReadonlySet<string> = new Set([identity.apiGroup, FORMER_API.group]);

function reasonToRemove(object: Readonly<Record<string, unknown>>, isServed: IsServed): string | undefined {
  const [kind, apiVersion] = [textAt(object, "kind"), textAt(object, "apiVersion")];
  if (!isServed(apiVersion)) return `the API does not serve ${apiVersion} any more`;
  if (PRODUCT_GROUPS.has(groupOf(apiVersion))) return "it is in use, and the chart of this release does not have it";
  if (kind === "APIServer" && !apiVersion.startsWith(OPERATOR_API.group)) return undefined;
  if (kind === "Namespace" && textAt(object, "metadata", "name") !== identity.operator) return undefined;
  return KEPT_KINDS[kind];
}

function groupOf(apiVersion: string): string {
  return apiVersion.replace(/\/.*$/, "");
}

function splitManifest(manifest: string): readonly string[] {
  return manifest.split(/^---[ \t]*\n/m).filter((document) => document.trim() !== "");
}

function parsed(document: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = Bun.YAML.parse(document);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
