/**
 * Tells the collector how to reach the controllers: where their replicas are, who signs their certificates, and a token of the
 * agent's account that is good for nothing else. The collector has no other access to the API.
 */
import type { LinkAccess } from "../../../flows/link-messages.ts";
import type { KubeClient, KubeRequest } from "../../../kube/api.ts";
import { requireOk } from "../../../kube/require-ok.ts";
import { isObject, objectsIn, textsIn } from "../../../model/shape.ts";
import { parseJson } from "../../../parse-json.ts";
import {
  FLOWS,
  FLOWS_AUDIENCE,
  FLOWS_AUTHORITY_KEY,
  FLOWS_LINK,
  flowServerName,
} from "../../../release/workloads/names.ts";
import { nodeUid, requestAccountToken, type TokenAccount } from "../../node-setup/account-token.ts";
import { keepToken } from "../../node-setup/keep-plugin-access.ts";

export interface LinkAccessOptions {
  readonly client: KubeClient;
  /** The agent's own; the controllers are in the same namespace. */
  readonly account: Pick<TokenAccount, "namespace" | "name" | "node">;
  /** Called with each change. */
  readonly send: (access: LinkAccess | undefined) => void;
  readonly now: () => number;
  readonly random: () => number;
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly log: (message: string) => void;
  /** Problems are reported once. */
  readonly problems: { report(message: string): void; forget(): void };
}

const DAY_SECONDS = 24 * 60 * 60;
const COMPARE_MILLISECONDS = 60_000;
const RETRY_MILLISECONDS = 5_000;

/** Runs until the signal is aborted; the collector is told then that there is no access. */
export async function keepLinkAccess(options: LinkAccessOptions, signal: AbortSignal): Promise<void> {
  const { client, account, send } = options;
  const known: { addresses?: readonly string[]; authority?: string; token?: string } = {};
  let sent = "";
  const change = (part: typeof known) => {
    Object.assign(known, part);
    const { addresses, authority, token } = known;
    if (addresses === undefined || authority === undefined || token === undefined) return;
    const access: LinkAccess = { addresses, authority, token, serverName: flowServerName(account.namespace) };
    if (JSON.stringify(access) === sent) return;
    sent = JSON.stringify(access);
    send(access);
  };
  const isServed = Promise.withResolvers<void>();
  const stop = () => isServed.resolve();
  signal.addEventListener("abort", stop);
  // Without an authority there are no controllers that serve the API: then there is nothing to have a token for.
  const keepOwnToken = async () => {
    await isServed.promise;
    if (signal.aborted) return;
    await keepToken(
      {
        ...options,
        title: "the access to the flow API of the controllers",
        isInstalled: () => true,
        readToken: () => known.token,
        placeToken: (token) => change({ token }),
        requestToken: (stop) =>
          requestAccountToken(client, { ...account, audience: FLOWS_AUDIENCE, validSeconds: DAY_SECONDS }, stop),
        readNodeUid: (stop) => nodeUid(client, account.node, stop),
      },
      signal,
    );
  };
  await Promise.all([
    keepOwnToken(),
    followAddresses(options, (addresses) => change({ addresses }), signal),
    followAuthority(
      options,
      (authority) => {
        change({ authority });
        isServed.resolve();
      },
      signal,
    ),
  ]);
  signal.removeEventListener("abort", stop);
  send(undefined);
}

async function followAuthority(
  { client, account, wait, random, problems }: LinkAccessOptions,
  found: (authority: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const request: KubeRequest = {
    method: "GET",
    path: `/api/v1/namespaces/${account.namespace}/configmaps/${FLOWS}`,
    signal,
  };
  let isFound = false;
  while (!signal.aborted) {
    try {
      const response = await client.request(request);
      const map: unknown = response.status === 404 ? {} : parseJson(requireOk(response, request));
      const data = isObject(map) && isObject(map["data"]) ? map["data"] : {};
      const authority = data[FLOWS_AUTHORITY_KEY];
      if (typeof authority === "string") {
        found(authority);
        isFound = true;
      }
    } catch (failure) {
      if (!signal.aborted) problems.report(`Cannot read the authority of the flow API: ${reasonOf(failure)}`);
    }
    await wait((isFound ? COMPARE_MILLISECONDS : RETRY_MILLISECONDS) * (0.5 + random() / 2), signal);
  }
}

/** A list, then a watch whose first event leads to the next list: replicas change rarely. */
async function followAddresses(
  { client, account, wait, random, problems }: LinkAccessOptions,
  found: (addresses: readonly string[]) => void,
  signal: AbortSignal,
): Promise<void> {
  const path = `/apis/discovery.k8s.io/v1/namespaces/${account.namespace}/endpointslices`;
  const query = { labelSelector: `kubernetes.io/service-name=${FLOWS}` };
  const request: KubeRequest = { method: "GET", path, query: { ...query, resourceVersion: "0" }, signal };
  while (!signal.aborted) {
    try {
      const list: unknown = parseJson(requireOk(await client.request(request), request));
      const { metadata, items } = isObject(list) ? list : {};
      found(addressesIn(objectsIn(items)));
      const resourceVersion = isObject(metadata) ? String(metadata["resourceVersion"]) : "";
      await firstChange(client.watch(path, { ...query, resourceVersion, allowWatchBookmarks: "true" }, signal));
    } catch (failure) {
      if (signal.aborted) return;
      problems.report(`Cannot follow where the controllers are: ${reasonOf(failure)}`);
      await wait(RETRY_MILLISECONDS * (0.5 + random()), signal);
    }
  }
}

async function firstChange(events: ReturnType<KubeClient["watch"]>): Promise<void> {
  for await (const { type } of events) if (type !== "OPENED" && type !== "BOOKMARK") return;
}

/** Of replicas that are ready, at the port for links. Pure. */
export function addressesIn(slices: readonly Readonly<Record<string, unknown>>[]): readonly string[] {
  const addresses = slices.flatMap(({ ports, endpoints }) => {
    const port = objectsIn(ports).find(({ name }) => name === FLOWS_LINK)?.["port"];
    if (typeof port !== "number") return [];
    return objectsIn(endpoints)
      .filter(({ conditions }) => !isObject(conditions) || conditions["ready"] !== false)
      .flatMap((endpoint) => textsIn(endpoint["addresses"]))
      .map((address) => (address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`));
  });
  return [...new Set(addresses)].toSorted();
}

function reasonOf(failure: unknown): string {
  return failure instanceof Error ? failure.message : String(failure);
}
