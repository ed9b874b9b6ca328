/** The Installations that `install` applies: those of the files, or one that its options amount to. */

import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { DEFAULT_NAME, installation } from "../../model/installation/installation.ts";
import type { IPPool } from "../../model/ip-pool.ts";
import { formatProblems } from "../../model/problem.ts";
import { isObject } from "../../model/shape.ts";
import type { ClusterFacts } from "../../release/installation/cluster-facts.ts";
import { completeInstallation } from "../../release/installation/complete.ts";
import type { KubeObject } from "../../release/kube-object.ts";
import { imageName } from "../../release/workloads/image.ts";
import { type Given, UsageError } from "../main/command.ts";
import type { Call, Files, Terminal } from "../main/context.ts";
import { splitDocuments } from "../manifest/documents.ts";
import { FILE_OPTION } from "../manifest/options.ts";
import { parseDocument } from "../manifest/parse-document.ts";
import { readText } from "../manifest/sources.ts";
import { installationFromFlags, networkFlags } from "./flags.ts";

export interface GivenInstallations {
  /** What is applied: `default` first. */
  readonly objects: readonly KubeObject[];
  /** What options change in the Installation that exists already; absent if the objects are applied. */
  readonly changes?: object;
  /** The image of the operator, with its tag. */
  readonly image: string;
  /** Names of Secrets that must exist in the namespace of the operator. */
  readonly pullSecrets: readonly string[];
  readonly etcdSecret?: string;
}

/** A file describes the whole network. */
export function refuseFileWithOptions(given: Given): void {
  const [flag] = networkFlags(given);
  if (flag === undefined || !given.lists.has(FILE_OPTION.name)) return;
  throw new UsageError(`"-f" and "--${flag}" cannot be combined: write it into the Installation`);
}

/**
 * Refuses what the operator would refuse, before anything is applied. Options change only what they name in an Installation
 * that exists; a file describes all of it.
 */
export async function givenInstallations(
  context: Call & Terminal & Files,
  given: Given,
  found: FoundInCluster = {},
): Promise<GivenInstallations> {
  const check: Check = { context, found };
  const files = given.lists.get(FILE_OPTION.name) ?? [];
  if (files.length > 0) return checked(await readInstallations(context, files), check);
  const wanted = installationFromFlags(given);
  const { installation: existing } = found;
  if (existing === undefined) return checked([wanted], check);
  requireValid(wanted);
  const changes = { spec: wanted["spec"] };
  const merged = { ...wanted, spec: mergeMembers(existing["spec"], wanted["spec"]) };
  return { ...effectiveOf([merged], check), changes };
}

/** Empty without a cluster. */
export interface FoundInCluster {
  /** The Installation that exists. */
  readonly installation?: KubeObject | undefined;
  /** The pools of the orchestrator's API. */
  readonly pools?: readonly IPPool[];
}

interface Check {
  readonly context: Call;
  readonly found: FoundInCluster;
}

function checked(objects: readonly KubeObject[], check: Check): GivenInstallations {
  for (const object of objects) requireValid(object);
  return effectiveOf(objects, check);
}

function effectiveOf(objects: readonly KubeObject[], { context, found }: Check): GivenInstallations {
  const first = objects.find(({ metadata }) => metadata.name === DEFAULT_NAME);
  if (first === undefined) throw invalid(`there is no Installation "${DEFAULT_NAME}"`);
  const overlay = objects.find((each) => each !== first);
  const facts = factsOf(context, objects.some(isOnEtcd) ? undefined : found.pools);
  const completed = completeInstallation({ default: first, ...(overlay && { overlay }) }, facts);
  if (!completed.ok) throw invalid(formatProblems(completed.problems));
  const { image, datastore } = completed.installation;
  return {
    objects: [first, ...(overlay === undefined ? [] : [overlay])],
    image: imageName(image, context.version),
    pullSecrets: image.pullSecrets,
    ...(datastore.type === "Etcd" && datastore.secretName !== undefined ? { etcdSecret: datastore.secretName } : {}),
  };
}

/** Without the pools of the datastore, the operator itself checks what depends on them. */
function factsOf({ version }: Call, pools: readonly IPPool[] | undefined): ClusterFacts {
  const arePoolsUnknown = pools === undefined;
  return { version, namespace: identity.systemNamespace, pools: pools ?? [], arePoolsUnknown, platformPodCidrs: [] };
}

function isOnEtcd({ spec }: KubeObject): boolean {
  const datastore = isObject(spec) ? spec["datastore"] : undefined;
  return isObject(datastore) && datastore["type"] === "Etcd";
}

/** As a merge patch does it. */
function mergeMembers(before: unknown, changes: unknown): unknown {
  if (!isObject(before) || !isObject(changes)) return changes;
  const members = Object.entries(changes).map(([name, value]) => [name, mergeMembers(before[name], value)] as const);
  return { ...before, ...Object.fromEntries(members) };
}

async function readInstallations(context: Terminal & Files, files: readonly string[]): Promise<readonly KubeObject[]> {
  const texts = await Promise.all(files.map((file) => readText(context, file)));
  return texts.flatMap((text, index) => objectsIn(text, files[index] ?? ""));
}

function objectsIn(text: string, file: string): readonly KubeObject[] {
  return splitDocuments(text).flatMap((document) => {
    const parsed = parseDocument(document);
    if (!parsed.ok) throw invalid(`${file}: ${parsed.problems.join("; ")}`);
    const { value } = parsed;
    if (value === null || value === undefined) return [];
    if (!isObject(value) || value["kind"] !== installation.kind) {
      throw invalid(`${file}, document ${document.number}: it is not an Installation`);
    }
    const metadata = isObject(value["metadata"]) ? value["metadata"] : {};
    const { apiVersion = installation.apiVersion, spec = {} } = value;
    const name = String(metadata["name"] ?? "");
    return [{ apiVersion: String(apiVersion), kind: installation.kind, metadata: { ...metadata, name }, spec }];
  });
}

function requireValid(object: KubeObject): void {
  const decoded = installation.decode(object);
  if (!decoded.ok) throw invalid(formatProblems(decoded.problems));
}

function invalid(state: string): PluginError {
  return new PluginError("resource-invalid", `Cannot install: ${state}`);
}
