/**
 * `-f`, `--without` and `--staged`: a datastore as it would be after files were applied, resources deleted and staged policies promoted.
 * The work is that of `apply` and `delete`, with their checks and their errors, on a datastore that keeps the writes to itself.
 */
import type { Datastore } from "../../../datastore/datastore.ts";
import { readAllEntries } from "../../../datastore/pages.ts";
import { readEach } from "../../../datastore/read-each.ts";
import type { PluginError } from "../../../errors.ts";
import { authoredPolicy, CLUSTER_POLICY } from "../../../model/cluster-network-policy.ts";
import { GLOBAL_NETWORK_POLICY, NETWORK_POLICY } from "../../../model/kinds.ts";
import { NOT_CONVERTED_ANNOTATION, ORCHESTRATOR_POLICY } from "../../../model/orchestrator-policy.ts";
import type { Resource } from "../../../model/resource.ts";
import { POLICY_KINDS, STAGED_KINDS } from "../../../policy/inputs.ts";
import { nameOf, promotionOf, type StagedPolicy } from "../../../policy/staged-set.ts";
import { quoted } from "../../../quote.ts";
import { deleteOne } from "../../delete/delete.ts";
import type { DeletionTarget } from "../../delete/deletion-targets.ts";
import type { AdminKind } from "../../kinds/kind.ts";
import { type Given, UsageError } from "../../main/command.ts";
import type { Call, Clock, Files, Terminal } from "../../main/context.ts";
import { reportError } from "../../main/report-error.ts";
import type { GivenResource } from "../../manifest/manifest.ts";
import { FILE_OPTION } from "../../manifest/options.ts";
import { readGivenResources } from "../../manifest/sources.ts";
import { notFound } from "../../resources/find.ts";
import { isOfOneResource } from "../../resources/for-each-resource.ts";
import { openOverlay } from "../../resources/overlay-store.ts";
import { kindNamed, parseReference, referenceText } from "../../resources/reference.ts";
import { DecodedOnce, findOne } from "../../resources/stored.ts";
import { UnknownKind } from "../../resources/unknown-kind.ts";
import { writeResource } from "../../resources/write.ts";
import { paintStderr } from "../../terminal/paint.ts";
import { STAGED_OPTION, WITHOUT_OPTION } from "./options.ts";

export interface PlannedChange {
  /** The datastore itself if nothing was given. */
  readonly store: Datastore;
  /** What is not as it is stored; what is given as it is stored already is not in it. */
  readonly changes: readonly ChangedResource[];
}

export interface ChangedResource {
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string | undefined;
  /** `networkpolicy/shop/web` */
  readonly reference: string;
  readonly change: "created" | "changed" | "deleted";
}

type Surroundings = Call & Terminal & Files & Clock & Parameters<typeof reportError>[0];

/** Reads the files before the datastore is opened. */
export async function readPlannedChange(
  context: Surroundings,
  given: Given,
): Promise<(store: Datastore) => Promise<PlannedChange>> {
  const hasFiles = given.lists.has(FILE_OPTION.name);
  const files = hasFiles ? await readGivenResources(context, given, { withOrchestrators: true }) : [];
  const words = given.lists.get(WITHOUT_OPTION.name) ?? [];
  const withStaged = given.switches.has(STAGED_OPTION.name);
  const { yellow } = paintStderr(context);
  const note = (text: string) => context.stderr(`${yellow("note:")} ${text}\n`);
  for (const { kind, name, resource } of files) {
    if (!isPolicyKind(kind) && !(withStaged && isStagedKind(kind)))
      note(`${referenceText(kind, name)} is left out: ${whyLeftOut(kind)}`);
    const lost = resource.metadata.annotations?.[NOT_CONVERTED_ANNOTATION];
    if (lost !== undefined) note(`${referenceText(kind, name)}: ${lost}`);
  }
  return async (stored) => {
    if (!hasPlannedChange(given)) return { store: stored, changes: [] };
    const store = openOverlay(stored);
    const applied = await applyAll(
      store,
      files.filter(({ kind }) => isPolicyKind(kind)),
      context,
    );
    const promoted = withStaged ? await promoteStored(store, files, { context, given }) : [];
    const deleted: ChangedResource[] = [];
    for (const word of words) {
      const target = await targetNamed(store, word, given);
      await deleteOne(store, target, { context: { ...context, wait: async () => {} }, given });
      deleted.push(changedResource(target, "deleted"));
    }
    return { store, changes: [...applied, ...promoted, ...deleted] };
  };
}

export function hasPlannedChange({ lists, switches }: Given): boolean {
  return lists.has(FILE_OPTION.name) || lists.has(WITHOUT_OPTION.name) || switches.has(STAGED_OPTION.name);
}

/** Also those of the files; that they would be staged is no change. */
async function promoteStored(
  store: Datastore,
  files: readonly GivenResource[],
  { context, given }: { readonly context: Surroundings; readonly given: Given },
): Promise<readonly ChangedResource[]> {
  await applyAll(
    store,
    files.filter(({ kind }) => isStagedKind(kind)),
    context,
  );
  return promoteAll(store, await readStaged(store), { context, given });
}

/** As if these alone were promoted, for who asks about them. */
export async function planPromotions(
  stored: Datastore,
  staged: readonly StagedPolicy[],
  means: { readonly context: Surroundings; readonly given: Given },
): Promise<PlannedChange> {
  const store = openOverlay(stored);
  return { store, changes: await promoteAll(store, staged, means) };
}

/** The enforced policies alone: nothing that is compared reads the staged ones. */
async function promoteAll(
  store: Datastore,
  staged: readonly StagedPolicy[],
  { context, given }: { readonly context: Surroundings; readonly given: Given },
): Promise<readonly ChangedResource[]> {
  const written: GivenResource[] = [];
  const deleted: ChangedResource[] = [];
  for (const each of staged) {
    const promotion = promotionOf(each);
    const { kind: word, ...name } = nameOf(promotion);
    const target = { kind: kindNamed(word), name };
    if (promotion.kind === "set") {
      const ofOrchestrator = each.kind === "StagedKubernetesNetworkPolicy";
      written.push({ ...target, resource: promotion.policy, ...(ofOrchestrator ? { ofOrchestrator } : {}) });
      continue;
    }
    const tolerant = { ...given, switches: new Set(["ignore-not-found"]) };
    const { action } = await deleteOne(store, target, {
      context: { ...context, wait: async () => {} },
      given: tolerant,
    });
    if (action === "deleted") deleted.push(changedResource(target, "deleted"));
  }
  return [...(await applyAll(store, written, context)), ...deleted];
}

/** Of an unreadable one it is not known what it would do. */
async function readStaged(store: Datastore): Promise<readonly StagedPolicy[]> {
  const all: StagedPolicy[] = [];
  for (const { prefix, decode } of Object.values(STAGED_KINDS)) {
    const { readable, unreadable } = readEach<StagedPolicy>(await readAllEntries(store, prefix), decode);
    if (unreadable[0] !== undefined) throw unreadable[0].failure;
    all.push(...readable);
  }
  return all;
}

function isStagedKind(kind: AdminKind): boolean {
  return Object.values(STAGED_KINDS).some(({ prefix }) => prefix === kind.prefix());
}

function whyLeftOut(kind: AdminKind): string {
  if (isStagedKind(kind)) return `it is not enforced (as if it were: --${STAGED_OPTION.name})`;
  return "what policy decides does not depend on it";
}

function isPolicyKind(kind: AdminKind): boolean {
  return Object.values(POLICY_KINDS).some(({ prefix }) => prefix === kind.prefix());
}

/** As `apply`: all failures are reported. */
async function applyAll(
  store: Datastore,
  files: readonly GivenResource[],
  context: Surroundings,
): Promise<readonly ChangedResource[]> {
  const decoded = new DecodedOnce();
  const changes: ChangedResource[] = [];
  const failures: PluginError[] = [];
  for (const each of files) {
    try {
      const isNew = each.ofOrchestrator === true && (await findOne(store, each.kind, each.name)).readable.length === 0;
      const options = { mode: "apply", decoded, now: () => context.now(), uuid: () => context.uuid() } as const;
      const { action } =
        each.ofOrchestrator === true
          ? await putAsConverted(store, each, isNew)
          : await writeResource(store, each, options);
      if (action !== "unchanged") changes.push(changedResource(each, action === "created" ? "created" : "changed"));
    } catch (failure) {
      if (!isOfOneResource(failure)) throw failure;
      failures.push(failure);
    }
  }
  const last = failures.pop();
  for (const failure of failures) reportError(context, failure);
  if (last !== undefined) throw last;
  return changes;
}

/** The orchestrator has its own checks; who reads it here converts it. */
async function putAsConverted(
  store: Datastore,
  { kind, name, resource }: GivenResource,
  isNew: boolean,
): Promise<{ readonly action: "created" | "configured" | "unchanged" }> {
  const key = kind.key(name);
  const value = JSON.stringify(resource);
  const { answers } = await store.read([{ kind: "key", key }]);
  const [there] = answers.flat();
  const stored: Resource | undefined = there && kind.codec.read(there.value, there.key);
  if (stored !== undefined && Bun.deepEquals(stored.spec, kind.codec.read(value, key).spec))
    return { action: "unchanged" };
  await store.commit([
    there === undefined ? { kind: "create", key, value } : { kind: "update", key, value, revision: there.revision },
  ]);
  return { action: isNew ? "created" : "configured" };
}

/** `KIND/NAME`, `KIND/NAMESPACE/NAME`; without a kind that of a policy. */
async function targetNamed(store: Datastore, word: string, given: Given): Promise<DeletionTarget> {
  const kind = kindIn(word);
  if (kind !== undefined) {
    if (isPolicyKind(kind)) {
      const { name } = parseReference({ ...given, operands: [word] });
      return { kind, name };
    }
    throw new UsageError(
      `"--without" is ${quoted(word)}: what policy decides does not depend on the kind ${kind.kind}`,
    );
  }
  const found: DeletionTarget[] = [];
  for (const target of policiesNamed(word, given)) {
    const { readable, unreadable } = await findOne(store, target.kind, target.name);
    if (readable.length + unreadable.length > 0) found.push(target);
  }
  const [only, ...others] = found;
  const [first] = policiesNamed(word, given);
  if (only === undefined)
    throw await notFound(store, first ?? { kind: kindNamed(NETWORK_POLICY.kind), name: { name: word } });
  if (others.length === 0) return only;
  const all = found.map((each) => referenceText(each.kind, each.name)).join(" or ");
  throw new UsageError(`"--without" is ${quoted(word)}, which names several policies: use ${all}`);
}

function kindIn(word: string): AdminKind | undefined {
  if (!word.includes("/")) return undefined;
  try {
    return kindNamed(word.slice(0, word.indexOf("/")));
  } catch (failure) {
    // The first of two words may be a namespace, that of three is a kind.
    if (failure instanceof UnknownKind && word.split("/").length === 2) return undefined;
    throw failure;
  }
}

function policiesNamed(word: string, given: Given): readonly DeletionTarget[] {
  const path = word.split("/");
  const [policy, global] = [kindNamed(NETWORK_POLICY.kind), kindNamed(GLOBAL_NETWORK_POLICY.kind)];
  const targetIn = (kind: AdminKind, name: string) => ({
    kind,
    name: parseReference({ ...given, operands: [kind.kind, name] }).name,
  });
  const converted = [...path.slice(0, -1), `${ORCHESTRATOR_POLICY}${path.at(-1)}`].join("/");
  const ofNamespace = [targetIn(policy, word), targetIn(policy, converted)];
  if (path.length > 1) return ofNamespace;
  return [...ofNamespace, targetIn(global, word), targetIn(global, `${CLUSTER_POLICY}${word}`)];
}

function changedResource({ kind, name }: DeletionTarget, change: ChangedResource["change"]): ChangedResource {
  // As explanations name it.
  const authored = authoredPolicy({ kind: kind.kind, metadata: name });
  return { ...authored, reference: referenceText(kind, name), change };
}

/** `created networkpolicy/shop/web, deleted tier/first`. */
export function changeWords(changes: readonly ChangedResource[]): string {
  if (changes.length === 0) return "nothing changes: what was given is stored already, or policy does not depend on it";
  return changes.map(({ change, reference }) => `${change} ${reference}`).join(", ");
}
