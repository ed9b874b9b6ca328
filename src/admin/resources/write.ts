/**
 * Creates and replaces resources. Every commit is guarded by the revision it was
 * decided from: a resource with a `resourceVersion` replaces only that revision;
 * one without replaces the current revision.
 */

import type { Change, Datastore, Written } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { isUneditedNetworkProfile, withCountingRules } from "../../model/network-profile.ts";
import { formatProblems, type Problem } from "../../model/problem.ts";
import { profile } from "../../model/profile.ts";
import type { Resource } from "../../model/resource.ts";
import type { Clock } from "../main/context.ts";
import type { GivenResource } from "../manifest/manifest.ts";
import { referenceText } from "./reference.ts";
import { DecodedOnce, readAll, readOne, type Stored } from "./stored.ts";

/** `apply` creates the resource, or replaces it if it exists, except for metadata that it does not mention. */
export type WriteMode = "create" | "replace" | "apply";

export interface WriteOutcome {
  readonly action: "created" | "configured" | "replaced" | "unchanged";
  readonly revision: string;
}

const ATTEMPTS = 5;

export interface WriteOptions extends Pick<Clock, "now" | "uuid"> {
  readonly mode: WriteMode;
  /** Shared by the writes of one command. */
  readonly decoded?: DecodedOnce;
  /** What the user gave: the resource, or what to change in the stored one. */
  readonly gave?: "resource" | "change";
}

export async function writeResource(
  store: Datastore,
  given: GivenResource,
  { mode, now, uuid, decoded = new DecodedOnce(), gave = "resource" }: WriteOptions,
): Promise<WriteOutcome> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    const existing = await readOne(store, given.kind, given.name);
    if (existing && mode === "create") throw alreadyExists(given, existing);
    if (!existing && mode === "replace") throw doesNotExist(given);

    const outcome = existing
      ? await change(store, given, { mode, existing, decoded, gave })
      : await create(store, given, { origin: { uid: uuid(), creationTimestamp: now().toISOString() }, decoded });
    if (outcome) return outcome;
  }
  throw new PluginError("try-again-later", `Cannot ${mode} ${textOf(given)}: others keep changing it`);
}

/** `apply` says what kubectl says. */
async function change(
  store: Datastore,
  given: GivenResource,
  { mode, ...before }: { readonly mode: WriteMode } & Replacement,
): Promise<WriteOutcome | undefined> {
  if (mode !== "apply") return replace(store, given, before);
  const outcome = await replace(store, keepUnmentioned(given, before.existing), before);
  return outcome?.action === "replaced" ? { ...outcome, action: "configured" } : outcome;
}

/** The metadata that the document does not mention stays as it is; `replace` removes it. */
function keepUnmentioned(given: GivenResource, { resource: { metadata: before } }: Stored): GivenResource {
  const { resource } = given;
  const { resourceVersion: _, ...kept } = before;
  const labels = { ...before.labels, ...resource.metadata.labels };
  const annotations = { ...before.annotations, ...resource.metadata.annotations };
  const metadata = {
    ...kept,
    ...resource.metadata,
    ...(before.labels === undefined ? {} : { labels }),
    ...(before.annotations === undefined ? {} : { annotations }),
  };
  return { ...given, resource: { ...resource, metadata } };
}

interface Origin {
  readonly uid: string;
  readonly creationTimestamp: string;
}

/** `undefined`: another writer was faster. */
async function create(
  store: Datastore,
  given: GivenResource,
  { origin, decoded }: { readonly origin: Origin; readonly decoded: DecodedOnce },
): Promise<WriteOutcome | undefined> {
  // A copy of a stored record, for example of a backup, means what the record meant.
  const isCopy = given.resource.metadata.uid !== undefined;
  const wanted = isCopy ? given.resource : asItCounts(given.resource);
  const resource = { ...wanted, metadata: { ...wanted.metadata, ...origin } };
  requireNone(given, (await given.kind.checkCreate?.(store, resource)) ?? []);
  requireNone(given, (await given.kind.checkWrite?.(store, resource)) ?? []);
  const fit = () => requireFit(store, { ...given, resource }, decoded);
  await fit();
  const key = given.kind.key(given.name);
  const written = await commit(store, given, { kind: "create", key, value: given.kind.codec.write(resource) });
  if (!written.ok) return undefined;
  try {
    // Two conflicting resources may have been created concurrently: then neither may stay.
    await fit();
  } catch (conflict) {
    await store.commit([{ kind: "delete", key, revision: written.revision }]);
    throw conflict;
  }
  return { action: "created", revision: written.revision };
}

interface Replacement extends Required<Pick<WriteOptions, "decoded" | "gave">> {
  readonly existing: Stored;
}

/** `undefined`: another writer was faster, and the user did not give a revision. */
async function replace(
  store: Datastore,
  given: GivenResource,
  { existing, decoded, gave }: Replacement,
): Promise<WriteOutcome | undefined> {
  const wanted = given.resource.metadata.resourceVersion;
  if (wanted !== undefined && wanted !== existing.revision) throw changedMeanwhile(given, wanted, existing);

  const hasNewRules = gave === "resource" || !Bun.deepEquals(given.resource.spec, existing.resource.spec);
  const isLeftAlone = isUnedited(existing.resource) || !hasNewRules;
  const counting = isLeftAlone ? given.resource : asItCounts(given.resource);
  const resource = withOrigin(counting, existing.resource);
  requireNone(given, given.kind.checkUpdate?.(existing.resource, resource) ?? []);
  requireNone(given, (await given.kind.checkWrite?.(store, resource)) ?? []);
  await requireFit(store, { ...given, resource }, decoded);
  const value = given.kind.codec.write(resource, existing.text);
  if (isSameJson(value, given.kind.codec.write(existing.resource, existing.text))) {
    return { action: "unchanged", revision: existing.revision };
  }
  const change = { kind: "update", key: existing.key, value, revision: existing.revision } as const;
  const written = await commit(store, given, change);
  return written.ok ? { action: "replaced", revision: written.revision } : undefined;
}

/** Whoever writes the profile of a network gets the rules that he wrote, also if ADD writes the same. */
function asItCounts(resource: Resource): Resource {
  return isUnedited(resource) ? withCountingRules(resource) : resource;
}

function isUnedited(resource: Resource): boolean {
  if (resource.kind !== profile.kind) return false;
  const decoded = profile.decode(resource);
  return decoded.ok && isUneditedNetworkProfile(decoded.value);
}

/** Makes the error of a record that is too large name the resource. */
async function commit(
  store: Datastore,
  given: GivenResource,
  change: Change & { readonly value: string },
): Promise<Written> {
  try {
    return await store.commit([change]);
  } catch (cause) {
    if (!(cause instanceof PluginError) || cause.kind !== "record-too-large") throw cause;
    const size = `${Buffer.byteLength(change.value)} bytes`;
    const message = `Cannot write ${textOf(given)}: it is too large for the datastore (${size})`;
    throw new PluginError(cause.kind, message, { details: cause.details, cause });
  }
}

/** The order of fields is not significant. */
function isSameJson(left: string, right: string): boolean {
  return Bun.deepEquals(JSON.parse(left), JSON.parse(right));
}

/** Keeps the uid and the creation time, which an update cannot change. */
function withOrigin(resource: Resource, { metadata, status }: Resource): Resource {
  const { uid, creationTimestamp } = metadata;
  const { uid: _, creationTimestamp: __, ...given } = resource.metadata;
  return {
    ...resource,
    metadata: {
      ...given,
      ...(uid === undefined ? {} : { uid }),
      ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
    },
    ...(resource.status === undefined && status !== undefined ? { status } : {}),
  };
}

async function requireFit(store: Datastore, given: GivenResource, { decode }: DecodedOnce): Promise<void> {
  const { kind, resource } = given;
  if (kind.among === undefined) return;
  const all = await readAll(store, kind, decode);
  requireNone(
    given,
    kind.among.one(
      resource,
      all.map((each) => each.resource),
    ),
  );
}

function requireNone(given: GivenResource, problems: readonly Problem[]): void {
  if (problems.length === 0) return;
  throw new PluginError("resource-invalid", `Cannot write ${textOf(given)}: ${formatProblems(problems)}`);
}

function alreadyExists(given: GivenResource, { revision, resource }: Stored): PluginError {
  const { creationTimestamp } = resource.metadata;
  const since = creationTimestamp === undefined ? "" : `, created ${creationTimestamp}`;
  return new PluginError(
    "resource-exists",
    `Cannot create ${textOf(given)}: it already exists (resourceVersion ${revision}${since})`,
    { details: "use apply or replace to change it" },
  );
}

function doesNotExist(given: GivenResource): PluginError {
  return new PluginError("resource-missing", `Cannot replace ${textOf(given)}: it does not exist`, {
    details: "use apply or create to create it",
  });
}

function changedMeanwhile(given: GivenResource, wanted: string, { revision }: Stored): PluginError {
  return new PluginError(
    "resource-changed",
    `Cannot replace ${textOf(given)}: it has changed since resourceVersion ${wanted} and is now at ${revision}`,
    { details: "get it again and repeat the change, or leave out resourceVersion to overwrite it" },
  );
}

function textOf({ kind, name }: GivenResource): string {
  return referenceText(kind, name);
}
