/**
 * `policy promote`: what a staged policy is tried for becomes true: the enforced policy of its name is written, or deleted, and then the
 * staged one is deleted. Whoever stops it in between leaves both, which say the same, and may call it again.
 */
import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import {
  findKind,
  STAGED_GLOBAL_NETWORK_POLICY,
  STAGED_KUBERNETES_NETWORK_POLICY,
  STAGED_NETWORK_POLICY,
} from "../../model/kinds.ts";
import { orchestratorSpec, type StagedKubernetesNetworkPolicy } from "../../model/staged-kubernetes-network-policy.ts";
import { enforcedMetadata, nameOf, promotionOf, type StagedPolicy } from "../../policy/staged-set.ts";
import { quoted } from "../../quote.ts";
import { formatYaml } from "../../yaml.ts";
import { withDatastore } from "../datastore/open.ts";
import { deleteOne } from "../delete/delete.ts";
import type { DeletionTarget } from "../delete/deletion-targets.ts";
import type { AdminKind } from "../kinds/kind.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given, UsageError, wantsJson } from "../main/command.ts";
import type { Clock, DatastoreAccess, Host } from "../main/context.ts";
import type { ActionResult } from "../resources/action-result.ts";
import { isDryRun, surroundingsOf } from "../resources/dry-run.ts";
import { notFound } from "../resources/find.ts";
import { forEachResource, isOfOneResource } from "../resources/for-each-resource.ts";
import { DRY_RUN_OPTION } from "../resources/options.ts";
import { withPolicyNotes } from "../resources/policy-notes.ts";
import { kindNamed, parseReference, referenceText } from "../resources/reference.ts";
import { findOne } from "../resources/stored.ts";
import { writeResource } from "../resources/write.ts";
import { planPromotions } from "./what-if/planned-change.ts";
import { showPreview } from "./what-if/preview.ts";

type Context = DatastoreAccess & Host & Clock;

export async function run(context: Context, given: Given): Promise<ExitCode> {
  if (given.operands.length === 0) throw new UsageError("Name a staged policy: NAME, NAMESPACE/NAME or KIND/NAME");
  const isMeant = given.switches.has("yes") || isDryRun(given);
  // What is not meant yet is only tried.
  const asked = isMeant ? given : { ...given, values: new Map([...given.values, [DRY_RUN_OPTION.name, "client"]]) };
  return withDatastore(context, given, async (store) => {
    const all: DeletionTarget[] = [];
    for (const word of given.operands) all.push(await stagedNamed(store, word, given));
    if (given.switches.has("manifest")) return printManifests(store, all, context);
    if (isDryRun(asked) && !wantsJson(asked)) await previewAll(context, given, { store, all });
    const work = surroundingsOf(asked, { store, context });
    const code = await withPolicyNotes(work.store, { context, given: asked, kinds: enforcedKinds() }, (noted) =>
      forEachResource(context, asked, { all, act: (each) => promote(noted, each, { context: work.context, given }) }),
    );
    if (isMeant || code !== EXIT_OK) return code;
    context.stderr("Nothing was changed. To do it, add --yes\n");
    return EXIT_FAILED;
  });
}

/** What cannot be read or written is reported by the work itself. */
async function previewAll(
  context: Context,
  given: Given,
  { store, all }: { readonly store: Datastore; readonly all: readonly DeletionTarget[] },
): Promise<void> {
  try {
    const staged = await Promise.all(all.map(async (each) => (await readStaged(store, each)).staged));
    const planned = await planPromotions(store, staged, { context, given });
    await showPreview(context, { ...given, operands: [] }, { stored: store, planned });
    context.stdout("\n");
  } catch (failure) {
    if (!isOfOneResource(failure)) throw failure;
  }
}

const STAGED_KINDS = [STAGED_NETWORK_POLICY, STAGED_GLOBAL_NETWORK_POLICY, STAGED_KUBERNETES_NETWORK_POLICY];

function enforcedKinds(): readonly AdminKind[] {
  return (["NetworkPolicy", "GlobalNetworkPolicy"] as const).map(kindNamed);
}

/** `KIND/NAME`, `KIND/NAMESPACE/NAME`; without a kind the one that exists. */
async function stagedNamed(store: Datastore, word: string, given: Given): Promise<DeletionTarget> {
  const [head = "", ...path] = word.split("/");
  const named = path.length === 0 ? undefined : findKind(STAGED_KINDS, head);
  if (named !== undefined) return { kind: kindNamed(named.kind), name: nameIn(named.kind, path.join("/"), given) };
  const possible = STAGED_KINDS.filter(({ namespaced }) => namespaced || path.length === 0).map(({ kind }) => ({
    kind: kindNamed(kind),
    name: nameIn(kind, word, given),
  }));
  const found: DeletionTarget[] = [];
  for (const target of possible) {
    const { readable, unreadable } = await findOne(store, target.kind, target.name);
    if (readable.length + unreadable.length > 0) found.push(target);
  }
  const [only = possible[0], ...others] = found;
  if (only === undefined) throw new UsageError(`${quoted(word)} is not a name of a staged policy`);
  if (others.length === 0) return only;
  const all = found.map((each) => referenceText(each.kind, each.name)).join(" or ");
  throw new UsageError(`${quoted(word)} names several staged policies: use ${all}`);
}

function nameIn(kind: string, name: string, given: Given) {
  return parseReference({ ...given, operands: [kind, name] }).name;
}

async function promote(
  store: Datastore,
  target: DeletionTarget,
  { context, given }: { readonly context: Context; readonly given: Given },
): Promise<ActionResult> {
  const { staged, revision } = await readStaged(store, target);
  requireOwn(staged, target);
  const promotion = promotionOf(staged);
  const { kind: word, ...name } = nameOf(promotion);
  const kind = kindNamed(word);
  const done =
    promotion.kind === "set"
      ? await writeResource(
          store,
          { kind, name, resource: promotion.policy },
          { mode: "apply", now: () => context.now(), uuid: () => context.uuid() },
        )
      : await deleteOne(store, { kind, name }, { context, given: tolerant(given) });
  await deleteOne(store, { ...target, revision }, { context, given });
  return { action: `promoted: ${referenceText(kind, name)} ${done.action}` };
}

/** What is gone already need not be deleted. */
function tolerant(given: Given): Given {
  return { ...given, switches: new Set([...given.switches, "ignore-not-found"]) };
}

async function readStaged(
  store: Datastore,
  target: DeletionTarget,
): Promise<{ readonly staged: StagedPolicy; readonly revision: string }> {
  const { readable, unreadable } = await findOne(store, target.kind, target.name);
  const [stored] = readable;
  if (stored === undefined) throw unreadable[0]?.failure ?? (await notFound(store, target));
  return { staged: stored.resource as StagedPolicy, revision: stored.revision };
}

/** The tool writes nothing of the orchestrator. */
function requireOwn(staged: StagedPolicy, { kind, name }: DeletionTarget): void {
  if (staged.kind !== "StagedKubernetesNetworkPolicy") return;
  const { name: policy, namespace = "" } = staged.metadata;
  const word = `${kind.shortNames[0]}/${namespace}/${policy}`;
  const way =
    staged.spec.stagedAction === "Delete"
      ? `kubectl delete networkpolicies.networking.k8s.io ${policy} -n ${namespace}`
      : `${identity.adminTool} policy promote ${word} --manifest | kubectl apply -f -`;
  throw new PluginError(
    "resource-invalid",
    `Cannot promote ${referenceText(kind, name)}: its enforced policy is one of networking.k8s.io, which kubectl writes`,
    { details: `use "${way}", then "${identity.adminTool} delete ${word}"` },
  );
}

async function printManifests(
  store: Datastore,
  all: readonly DeletionTarget[],
  context: Pick<Context, "stdout">,
): Promise<ExitCode> {
  const documents: string[] = [];
  for (const target of all) {
    const { staged } = await readStaged(store, target);
    const promotion = promotionOf(staged);
    if (promotion.kind === "delete")
      throw new UsageError(`${referenceText(target.kind, target.name)} deletes a policy: there is nothing to print`);
    documents.push(
      formatYaml(staged.kind === "StagedKubernetesNetworkPolicy" ? ofOrchestrator(staged) : promotion.policy),
    );
  }
  context.stdout(documents.join("---\n"));
  return EXIT_OK;
}

function ofOrchestrator({ metadata, spec: { stagedAction: _, ...spec } }: StagedKubernetesNetworkPolicy): object {
  const kind = { apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy" };
  return { ...kind, metadata: enforcedMetadata(metadata), spec: orchestratorSpec(spec) };
}
