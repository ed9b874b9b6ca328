/**
 * Creating and replacing resources. Every commit names the revision it was
 * decided from: a resource that gives its `resourceVersion` is written only
 * over that very revision; one that does not is written over what is there now.
 */
import type { Change, Datastore, Written } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { formatProblems, type Problem } from "../../model/problem.ts";
import type { Resource } from "../../model/resource.ts";
import type { Context } from "../command.ts";
import type { GivenResource } from "./manifest.ts";
import { referenceText } from "./reference.ts";
import { readAll, readOne, type Stored } from "./stored.ts";

/** `apply` creates what is not there and replaces what is. */
export type Way = "create" | "replace" | "apply";

export interface WriteOutcome {
  readonly action: "created" | "replaced" | "unchanged";
  readonly revision: string;
}

const ATTEMPTS = 5;

export async function writeResource(
  store: Datastore,
  given: GivenResource,
  { way, now, uuid }: { readonly way: Way } & Pick<Context, "now" | "uuid">,
): Promise<WriteOutcome> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    const existing = await readOne(store, given.kind, given.name);
    if (existing && way === "create") throw existsAlready(given, existing);
    if (!existing && way === "replace") throw doesNotExist(given);

    const outcome = existing
      ? await replace(store, given, existing)
      : await create(store, given, { uid: uuid(), creationTimestamp: now().toISOString() });
    if (outcome) return outcome;
  }
  throw new PluginError("try-again-later", `Cannot ${way} ${textOf(given)}: others change it all the time`);
}

/** `undefined`: somebody else was quicker. */
async function create(
  store: Datastore,
  given: GivenResource,
  born: { readonly uid: string; readonly creationTimestamp: string },
): Promise<WriteOutcome | undefined> {
  const resource = { ...given.resource, metadata: { ...given.resource.metadata, ...born } };
  refuse(given, (await given.kind.checkCreate?.(store, resource)) ?? []);
  await requireFit(store, given, resource);
  const key = given.kind.key(given.name);
  const written = await commit(store, given, { kind: "create", key, value: given.kind.codec.write(resource) });
  if (!written.ok) return undefined;
  try {
    // Two that do not go together may have been created at the same time: then neither may stay.
    await requireFit(store, given, resource);
  } catch (misfit) {
    await store.commit([{ kind: "delete", key, revision: written.revision }]);
    throw misfit;
  }
  return { action: "created", revision: written.revision };
}

/** `undefined`: somebody else was quicker, and the user does not insist on a revision. */
async function replace(store: Datastore, given: GivenResource, existing: Stored): Promise<WriteOutcome | undefined> {
  const wanted = given.resource.metadata.resourceVersion;
  if (wanted !== undefined && wanted !== existing.revision) throw changedMeanwhile(given, wanted, existing);

  const resource = withOrigin(given.resource, existing.resource);
  refuse(given, given.kind.checkUpdate?.(existing.resource, resource) ?? []);
  await requireFit(store, given, resource);
  const value = given.kind.codec.write(resource, existing.text);
  if (isSameJson(value, given.kind.codec.write(existing.resource, existing.text))) {
    return { action: "unchanged", revision: existing.revision };
  }
  const change = { kind: "update", key: existing.key, value, revision: existing.revision } as const;
  const written = await commit(store, given, change);
  return written.ok ? { action: "replaced", revision: written.revision } : undefined;
}

/** What is too large is a matter of this one resource, whatever the datastore calls it. */
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
    const message = `Cannot write ${textOf(given)}: it is too large for the datastore, ${size} as it would be stored`;
    throw new PluginError(cause.kind, message, { details: cause.details, cause });
  }
}

/** The order of fields means nothing. */
function isSameJson(left: string, right: string): boolean {
  return Bun.deepEquals(JSON.parse(left), JSON.parse(right));
}

/** Who a resource is does not change with what it says. */
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

async function requireFit(store: Datastore, given: GivenResource, resource: Resource): Promise<void> {
  const { kind } = given;
  if (!kind.checkAmong) return;
  const all = await readAll(store, kind);
  refuse(
    given,
    kind.checkAmong(
      resource,
      all.map((each) => each.resource),
    ),
  );
}

function refuse(given: GivenResource, problems: readonly Problem[]): void {
  if (problems.length === 0) return;
  throw new PluginError("resource-invalid", `Cannot write ${textOf(given)}: ${formatProblems(problems)}`);
}

function existsAlready(given: GivenResource, { revision, resource }: Stored): PluginError {
  const { creationTimestamp } = resource.metadata;
  const since = creationTimestamp === undefined ? "" : `, made ${creationTimestamp}`;
  return new PluginError(
    "resource-exists",
    `Cannot create ${textOf(given)}: it exists already (resourceVersion ${revision}${since})`,
    { details: "use apply or replace to change it" },
  );
}

function doesNotExist(given: GivenResource): PluginError {
  return new PluginError("resource-missing", `Cannot replace ${textOf(given)}: it does not exist`, {
    details: "use apply or create to make it",
  });
}

function changedMeanwhile(given: GivenResource, wanted: string, { revision }: Stored): PluginError {
  return new PluginError(
    "resource-changed",
    `Cannot replace ${textOf(given)}: it was changed since resourceVersion ${wanted}, it is now at ${revision}`,
    { details: "get it again, repeat the change, or leave out resourceVersion to overwrite it" },
  );
}

function textOf({ kind, name }: GivenResource): string {
  return referenceText(kind, name);
}
