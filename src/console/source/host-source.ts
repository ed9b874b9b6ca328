/**
 * One host as the user who has started `vendorctl console` may see it: its own files, kernel and agent, the datastore of its network,
 * and the flows of its agent. Who opens the page sees what that user sees.
 */
import { answersOfNode } from "../../admin/flows/flow-access.ts";
import { findIpamProblems } from "../../admin/ipam/check/check.ts";
import type { Given } from "../../admin/main/command.ts";
import type { Clock, DatastoreAccess, Host } from "../../admin/main/context.ts";
import { readHostStatus } from "../../admin/status/read-host.ts";
import { flowSocketPath } from "../../config/run-directory.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import type { FlowAnswer } from "../../flows/flow-answer.ts";
import { type FlowQuery, parametersOf } from "../../flows/flow-query.ts";
import type { FlowPath } from "../../flows/flow-request.ts";
import { formatAddress } from "../../ip/address.ts";
import { unlessAborted } from "../../timers.ts";
import type { ConsoleSource } from "../source.ts";
import { EVERY_NAME } from "./address-map.ts";
import { applyPolicyDraft, type DraftMeans, readPolicyDraft } from "./flow-draft.ts";
import { hostHealth } from "./host-health.ts";
import { type AddressMeans, readAddress, readPoolMap, readPools } from "./read-addresses.ts";

export interface HostSourceOptions {
  /** The options that select the datastore. */
  readonly given: Given;
  /** That of the network of this host; stays open. */
  readonly store: Datastore;
  /** Only this host uses it. */
  readonly isEmbedded: boolean;
}

type HostContext = DatastoreAccess & Host & Clock;

/** Searching all records for leaks costs more than reading one address. */
const LEAKS_MILLISECONDS = 60_000;

export async function openHostSource(context: HostContext, options: HostSourceOptions): Promise<ConsoleSource> {
  const { store } = options;
  const { env } = context;
  const answers = (path: FlowPath, parameters: Readonly<Record<string, string>>, stop: AbortSignal) =>
    answersOfNode(flowSocketPath(env), { path, parameters, stop });
  const addressMeans = addressMeansOf(context, options);
  const explanation = (id: string, signal: AbortSignal): AsyncIterable<FlowAnswer> =>
    answers("explanation", { id }, signal);
  const draftMeans = (id: string, signal: AbortSignal): DraftMeans => ({ id, answers: explanation(id, signal), store });
  return {
    user: `${env["USER"] ?? "root"} on ${await context.hostName()}`,
    rights: async () => "what the user of this console may read",
    health: (signal) => unlessAborted(readHealth(context, options), signal),
    flows(query: FlowQuery, follow, signal) {
      const parameters = Object.fromEntries(parametersOf(query));
      return answers("flows", { ...parameters, ...(follow ? { follow: "true" } : {}) }, signal);
    },
    explanation,
    pools: (signal) => unlessAborted(addressMeans().then(readPools), signal),
    async *poolMap(pool, signal) {
      const means = await unlessAborted(addressMeans(), signal);
      for await (const answer of readPoolMap(pool, means)) {
        signal.throwIfAborted();
        yield answer;
      }
    },
    address: (address, signal) =>
      unlessAborted(
        addressMeans().then((means) => readAddress(address, means)),
        signal,
      ),
    draft: (id, signal) => unlessAborted(readPolicyDraft(draftMeans(id, signal)), signal),
    applyDraft: (id, draft, signal) => applyPolicyDraft(draftMeans(id, signal), draft, context),
    close: async () => {},
  };
}

async function readHealth(context: HostContext, { given }: HostSourceOptions) {
  const [status, routing, addresses] = await Promise.all([
    readHostStatus(context, given),
    context.readRoutingFacts().catch(() => undefined),
    context.hostAddresses().catch(() => []),
  ]);
  return hostHealth({
    ...{ status, now: context.now(), addresses: addresses.map(({ address }) => formatAddress(address)) },
    ...(routing === undefined ? {} : { routing }),
  });
}

function addressMeansOf(
  context: HostContext,
  { given, store, isEmbedded }: HostSourceOptions,
): () => Promise<AddressMeans> {
  let searched: { readonly at: number; readonly leaked: Promise<ReadonlyMap<string, string>> } | undefined;
  const search = async () => {
    const found = await findIpamProblems(store, { context, given, isEmbedded });
    return new Map(
      found.flatMap((each) =>
        (each.kind === "allocation-without-endpoint" || each.kind === "container-gone") && each.address !== undefined
          ? [[each.address, each.message] as const]
          : [],
      ),
    );
  };
  return async () => {
    const now = context.now();
    if (searched === undefined || now.getTime() - searched.at >= LEAKS_MILLISECONDS) {
      const latest = { at: now.getTime(), leaked: search() };
      latest.leaked.catch(() => {
        if (searched === latest) searched = undefined;
      });
      searched = latest;
    }
    return { store, sightOf: async () => EVERY_NAME, leaks: await searched.leaked, now };
  };
}
