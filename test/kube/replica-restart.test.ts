/**
 * What a node agent follows, on a real API server that is killed and started again: the replica of before, and that of an
 * agent that starts just then with the revisions that its kernel may have. With lists that go on as watches, and without.
 */
import { describe, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { networkKinds } from "../../src/agent/network/followed-network.ts";
import { openDatastore } from "../../src/datastore/open.ts";
import type { SeenRevisions } from "../../src/datastore/replica/feed.ts";
import { type Replica, startReplica } from "../../src/datastore/replica.ts";
import { identity } from "../../src/identity.ts";
import { resourceKey } from "../../src/model/keys.ts";
import { type ApiServer, apiServerProblem, startApiServer } from "../support/kube-apiserver.ts";
import { installCrds } from "../support/kube-crds.ts";
import { testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";

const testServer = testNeeding(apiServerProblem());
const ROLES = [`${identity.product}-kubernetes`, `${identity.nodeAgent}-kubernetes`];
const KINDS = networkKinds("node-1");
const LIMIT_MILLISECONDS = 60_000;

describe("the replica of a node agent on an API server that is started again", () => {
  for (const watchList of ["served", "refused"] as const) {
    const title = `comes back into sync, and so does that of an agent that starts then (WatchList ${watchList})`;
    const test = async () => {
      const apiServerFlags = watchList === "served" ? [] : ["--feature-gates=WatchList=false"];
      await using stack = new AsyncDisposableStack();
      const server = await startApiServer({ apiServerFlags });
      stack.defer(() => server.stop());
      const { kubeconfig, user } = await prepare(server);
      const open = async (seen: Seen) => {
        const store = await openDatastore({ kind: "orchestrator", access: { kubeconfigs: [kubeconfig] } });
        const stop = new AbortController();
        const replica = startReplica(store, KINDS, { signal: stop.signal, watches: "per kind", seen });
        stack.defer(async () => {
          stop.abort();
          await replica.ended;
          await store.close();
        });
        return replica;
      };
      const ofFirst = new Seen();
      const first = await open(ofFirst);
      await hasProfile(first, "before", server);
      const audit = server.startAudit();
      await server.apiServer.restart();
      const ofSecond = new Seen(ofFirst);
      const second = await open(ofSecond);
      for (const replica of [first, second]) await hasProfile(replica, "after", server);

      expect([...ofFirst.wentBack, ...ofSecond.wentBack]).toEqual([]);
      // A server that has just started has not read roles and storage yet, and asks to come back.
      // This one has no definition of ClusterNetworkPolicy, which is looked for again and again.
      const requests = audit
        .requests(user)
        .filter(({ status, uri }) => ![0, 403, 429].includes(status) && !uri.includes("/clusternetworkpolicies"));
      const streams = requests.filter(({ uri }) => uri.includes("sendInitialEvents=true"));
      const lists = requests.filter(({ verb, uri }) => verb === "list" && !/[?&]limit=1(&|$)/.test(uri));
      expect(new Set(streams.map(({ status }) => status))).toEqual(new Set([watchList === "served" ? 200 : 422]));
      if (watchList === "served") expect(lists.map(({ uri }) => uri)).toEqual([]);
      else expect(lists.filter(({ uri }) => uri.includes("NotOlderThan")).length).toBeGreaterThan(0);
    };
    testServer(title, test, 180_000);
  }
});

/** Roles, CRDs, and a service account with the role of the node agent. */
async function prepare(server: ApiServer) {
  await installCrds(server);
  for (const role of ROLES) {
    await server.apply(readFileSync(join(import.meta.dir, `../../deploy/rbac/${role}.yaml`), "utf8"));
  }
  return server.serviceAccount({ name: identity.product, clusterRole: `${identity.product}-kubernetes` });
}

async function hasProfile(
  replica: Replica<{ readonly profiles: unknown }>,
  namespace: string,
  server: ApiServer,
): Promise<void> {
  await server.apply(JSON.stringify({ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } }));
  const key = resourceKey("profiles", { name: `kns.${namespace}` });
  const isDone = () => replica.status.state === "in sync" && replica.snapshot?.profiles.get(key) !== undefined;
  await pollUntil(isDone, `all kinds, and the profile of namespace ${namespace}`, LIMIT_MILLISECONDS).catch((error) => {
    throw new Error(`${error}: ${JSON.stringify(replica.status)}`);
  });
}

class Seen implements SeenRevisions {
  readonly wentBack: string[] = [];
  private readonly revisions: Map<string, string>;

  constructor(former?: Seen) {
    this.revisions = new Map(former?.revisions);
  }

  find(watched: string): string | undefined {
    return this.revisions.get(watched);
  }

  note(watched: string, revision: string): void {
    const before = this.revisions.get(watched) ?? "0";
    if (BigInt(revision) < BigInt(before)) this.wentBack.push(`${watched} from ${before} to ${revision}`);
    this.revisions.set(watched, revision);
  }
}
