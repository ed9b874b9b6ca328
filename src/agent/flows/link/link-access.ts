/**
 * Tells the collector how to reach the controllers: where their replicas are, who signs their certificates, and a token of the
 * agent's account that is good for nothing else. The collector has no other access to the API.
 */
import type { LinkAccess } from "../../../flows/link-messages.ts";
import { identity } from "../../../identity.ts";
import type { KubeClient, KubeRequest } from "../../../kube/api.ts";
import { clusterObjects } from "../../../kube/objects.ts";
import { requireOk } from "../../../kube/require-ok.ts";
import { readServerVersion, tokenBindingProblem } from "../../../kube/server-version.ts";
import { isObject, objectsIn, textsIn } from "../../../model/shape.ts";
import { parseJson } from "../../../parse-json.ts";
import { quoted } from "../../../quote.ts";
import { FLOWS, FLOWS_AUDIENCE, FLOWS_LINK, flowServerName, TLS_KEYS } from "../../../release/workloads/names.ts";
import type { FollowedNetwork } from "../../network/followed-network.ts";
import { nodeUid, requestAccountToken, type TokenAccount } from "../../node-setup/account-token.ts";
import { keepToken } from "../../node-setup/keep-plugin-access.ts";

type Given = Pick<FollowedNetwork, "means" | "network"> & {
  readonly report: (message: string) => void;
  /** Called with each change. */
  readonly send: (access: LinkAccess | undefined) => void;
};

interface Followed extends Given {
  readonly client: KubeClient;
  /** The agent's own; the controllers are in the same namespace. */
  readonly account: TokenAccount;
}

const DAY_SECONDS = 24 * 60 * 60;
const COMPARE_MILLISECONDS = 60_000;
const RETRY_MILLISECONDS = 5_000;
/** Without the API of flows, or the permission to use it. */
const ABSENT_MILLISECONDS = 30_000;

/** Until the signal is aborted. Without Kubernetes, or an account of its own, the node answers root alone. */
export async function followControllers(given: Given, stop: AbortSignal): Promise<void> {
  const { means, network, report } = given;
  const { access } = network.orchestrator;
  const { wait, random } = means.clock;
  while (access !== undefined && !stop.aborted) {
    const ending = new AbortController();
    const signal = AbortSignal.any([stop, ending.signal]);
    let client: KubeClient | undefined;
    try {
      client = await means.openKubeClient(access, report);
      await requireBoundTokens(client, signal);
      const account = await ownAccount(client, signal);
      await keepAccess({ ...given, client, account }, signal);
    } catch (failure) {
      if (!stop.aborted) report(`Cannot open links to the controllers: ${reasonOf(failure)}`);
    } finally {
      ending.abort();
      await client?.close();
    }
    await wait(ABSENT_MILLISECONDS * (0.5 + random() / 2), stop);
  }
}

const NODE_NAME = "authentication.kubernetes.io/node-name";

/** Without them the controllers cannot know whose flows these are. A server that does not say its version counts as a new one. */
async function requireBoundTokens(client: KubeClient, signal: AbortSignal): Promise<void> {
  const problem = tokenBindingProblem(await readServerVersion(clusterObjects(client, signal)).catch(() => ""));
  if (problem !== undefined)
    throw new Error(`${problem}. The flows of this node are shown on it alone: ${identity.adminTool} flows --local`);
}

/** As the API server says who this agent is. */
async function ownAccount(client: KubeClient, signal: AbortSignal): Promise<TokenAccount> {
  const request: KubeRequest = {
    ...{ method: "POST", path: "/apis/authentication.k8s.io/v1/selfsubjectreviews", attempt: "retry", signal },
    body: JSON.stringify({ apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" }),
  };
  const review: unknown = parseJson(requireOk(await client.request(request), request));
  const status = isObject(review) && isObject(review["status"]) ? review["status"] : {};
  const { username, extra } = isObject(status["userInfo"]) ? status["userInfo"] : {};
  const [, namespace, name] = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(String(username)) ?? [];
  const [node] = textsIn(isObject(extra) ? extra[NODE_NAME] : undefined);
  if (namespace !== undefined && name !== undefined && node !== undefined) return { namespace, name, node };
  throw new Error(`the agent's user ${quoted(username)} is not an account whose token is bound to a Node`);
}

async function keepAccess(followed: Followed, signal: AbortSignal): Promise<void> {
  const { client, account, send, means, report } = followed;
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
  signal.addEventListener("abort", () => isServed.resolve(), { once: true });
  const { now, random, wait } = means.clock;
  // Without an authority no controllers serve the API: then there is nothing to have a token for.
  const keepOwnToken = async () => {
    await isServed.promise;
    await keepToken(
      {
        title: "the access to the flow API of the controllers",
        isInstalled: () => true,
        readToken: () => known.token,
        placeToken: (token) => change({ token }),
        requestToken: (stop) =>
          requestAccountToken(client, { ...account, audience: FLOWS_AUDIENCE, validSeconds: DAY_SECONDS }, stop),
        readNodeUid: (stop) => nodeUid(client, account.node, stop),
        ...{ now: () => now().getTime(), random, wait, log: () => {} },
        problems: { report, forget: () => {} },
      },
      signal,
    );
  };
  const foundAuthority = (authority: string) => {
    change({ authority });
    isServed.resolve();
  };
  await Promise.all([
    keepOwnToken(),
    followAddresses(followed, (addresses) => change({ addresses }), signal),
    followAuthority(followed, foundAuthority, signal),
  ]);
}

async function followAuthority(
  { client, account, means, report }: Followed,
  found: (authority: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const request: KubeRequest = {
    method: "GET",
    path: `/api/v1/namespaces/${account.namespace}/configmaps/${FLOWS}`,
    signal,
  };
  const { wait, random } = means.clock;
  let isFound = false;
  while (!signal.aborted) {
    try {
      const response = await client.request(request);
      const map: unknown = response.status === 404 ? {} : parseJson(requireOk(response, request));
      const data = isObject(map) && isObject(map["data"]) ? map["data"] : {};
      const authority = data[TLS_KEYS.authorities];
      if (typeof authority === "string") {
        found(authority);
        isFound = true;
      }
    } catch (failure) {
      if (!signal.aborted) report(`Cannot read the authority of the flow API: ${reasonOf(failure)}`);
    }
    await wait((isFound ? COMPARE_MILLISECONDS : RETRY_MILLISECONDS) * (0.5 + random() / 2), signal);
  }
}

/** A list, then a watch whose first event leads to the next list: replicas change rarely. */
async function followAddresses(
  { client, account, means, report }: Followed,
  found: (addresses: readonly string[]) => void,
  signal: AbortSignal,
): Promise<void> {
  const { wait, random } = means.clock;
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
      report(`Cannot follow where the controllers are: ${reasonOf(failure)}`);
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
