/**
 * What the kernel of a node already has, on real API servers: the next agent of the node, which knows the revisions that the
 * last one has kept, shows nothing older.
 *
 *   etcd ──> server 1 ──> first agent, which has seen everything
 *     └─ held back ─> server 2 ──> next agent
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { networkKinds } from "../../src/agent/network/followed-network.ts";
import { keepSeenRevisions, SEEN_REVISIONS_FILE } from "../../src/agent/network/seen-revisions.ts";
import { openDatastore } from "../../src/datastore/open.ts";
import { type Replica, startReplica } from "../../src/datastore/replica.ts";
import { identity } from "../../src/identity.ts";
import { openFolder } from "../../src/linux/file-folder.ts";
import { resourceKey } from "../../src/model/keys.ts";
import { type ApiServer, apiServerProblem, startApiServer } from "../support/kube-apiserver.ts";
import { installCrds } from "../support/kube-crds.ts";
import { testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { startProxy, type UnreliableProxy } from "../support/unreliable-proxy.ts";

const problem = apiServerProblem();
const testServers = testNeeding(problem);
const ROLES = [`${identity.product}-kubernetes`, `${identity.nodeAgent}-kubernetes`];
const KINDS = networkKinds("node-1");
const LIMIT_MILLISECONDS = 60_000;

let first: ApiServer;
let second: ApiServer;
let etcd: UnreliableProxy;
let kubeconfigs: { readonly first: string; readonly second: string };
const directory = temporaryDirectory("seen");
const folder = openFolder(directory.path);

beforeAll(async () => {
  if (problem !== undefined) return;
  first = await startApiServer();
  await installCrds(first);
  for (const role of ROLES) {
    await first.apply(readFileSync(join(import.meta.dir, `../../deploy/rbac/${role}.yaml`), "utf8"));
  }
  etcd = await startProxy(Number(new URL(first.etcdEndpoint).port));
  second = await startApiServer({ etcdOfCluster: `http://127.0.0.1:${etcd.port}` });
  const account = { name: identity.product, clusterRole: `${identity.product}-kubernetes` };
  const configOn = async (server: ApiServer) => (await server.serviceAccount(account)).kubeconfig;
  kubeconfigs = { first: await configOn(first), second: await configOn(second) };
}, 120_000);
afterAll(async () => {
  await Promise.all([first?.stop(), second?.stop()]);
  await etcd?.stop();
  directory.remove();
});

/** The replica of an agent, with what agents of this node have kept. */
async function openAgent(kubeconfig: string) {
  const store = await openDatastore({ kind: "orchestrator", access: { kubeconfigs: [kubeconfig] } });
  const stop = new AbortController();
  const problems: string[] = [];
  const report = (message: string) => void problems.push(message);
  const replica = startReplica(store, KINDS, {
    signal: stop.signal,
    watches: "per kind",
    seen: keepSeenRevisions(folder, report),
    report: ({ message }) => report(message),
  });
  const shown = profilesShown(replica);
  return {
    replica,
    problems,
    shown,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await replica.ended;
      await store.close();
    },
  };
}

/** The names of the profiles in each state that it shows. */
function profilesShown(replica: Replica<{ readonly profiles: unknown }>): readonly (readonly string[])[] {
  const shown: string[][] = [];
  const collect = async () => {
    for await (const { snapshot } of replica.part(["profiles"]).updates()) shown.push([...snapshot.profiles.keys()]);
  };
  void collect();
  return shown;
}

const profileOf = (namespace: string) => resourceKey("profiles", { name: `kns.${namespace}` });
const isInSync = ({ replica }: { readonly replica: Replica<unknown> }) => replica.status.state === "in sync";

async function createNamespace(name: string): Promise<void> {
  await first.apply(JSON.stringify({ apiVersion: "v1", kind: "Namespace", metadata: { name } }));
}

describe("the next agent of a node", () => {
  testServers(
    "shows nothing of an API server that is behind what the last one has seen",
    async () => {
      {
        // The second server keeps a copy from now on.
        await using warm = await openAgent(kubeconfigs.second);
        await pollUntil(() => isInSync(warm), "the second server to have everything", LIMIT_MILLISECONDS);
      }
      await using stack = new AsyncDisposableStack();
      let next: Awaited<ReturnType<typeof openAgent>> | undefined;
      await etcd.whileSilent(async () => {
        await createNamespace("closed");
        {
          await using last = await openAgent(kubeconfigs.first);
          const hasSeen = () => last.shown.some((keys) => keys.includes(profileOf("closed")));
          await pollUntil(hasSeen, "the last agent to see the namespace", LIMIT_MILLISECONDS);
        }
        next = stack.use(await openAgent(kubeconfigs.second));
        const { problems } = next;
        await pollUntil(() => problems.length > 0, "the next agent to give up its first list", LIMIT_MILLISECONDS);
        expect(next.shown).toEqual([]);
      });
      const { shown } = next ?? { shown: [] };
      await pollUntil(() => shown.length > 0, "the second server to reach it", LIMIT_MILLISECONDS);

      expect(shown.filter((keys) => !keys.includes(profileOf("closed")))).toEqual([]);
    },
    180_000,
  );

  testServers(
    "follows a cluster whose datastore was restored from an older copy, with lower revisions",
    async () => {
      const kept = Object.keys(JSON.parse(folder.read(SEEN_REVISIONS_FILE)));
      folder.write(SEEN_REVISIONS_FILE, JSON.stringify(Object.fromEntries(kept.map((name) => [name, "1000000000"]))));
      await using next = await openAgent(kubeconfigs.first);
      await pollUntil(() => isInSync(next), "the next agent to follow it", LIMIT_MILLISECONDS).catch((error) => {
        throw new Error(`${error}: ${JSON.stringify(next.problems)}`);
      });

      expect(next.shown.at(-1)).toContain(profileOf("closed"));
    },
    120_000,
  );
});
