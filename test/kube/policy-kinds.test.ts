/** Policies on a real API server: what the node agent sees under its role, and what the admin tool does. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Datastore } from "../../src/datastore/datastore.ts";
import { openDatastore } from "../../src/datastore/open.ts";
import { type Replica, startReplica } from "../../src/datastore/replica.ts";
import { API_VERSION, identity } from "../../src/identity.ts";
import { POLICY_KINDS, type PolicyValues } from "../../src/policy/inputs.ts";
import { GOOD_POLICIES } from "../support/bad-policies.ts";
import { type ApiServer, apiServerProblem, startApiServer } from "../support/kube-apiserver.ts";
import { installCrds } from "../support/kube-crds.ts";
import { testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";

const problem = apiServerProblem();
const testServer = testNeeding(problem);
const ROLE = `${identity.product}-node-kubernetes`;
const ADMIN_TOOL = join(import.meta.dir, "../../dist/bin", identity.adminTool);

let server: ApiServer;
let store: Datastore;
let replica: Replica<PolicyValues>;
const stop = new AbortController();
const problems: string[] = [];

beforeAll(async () => {
  if (problem !== undefined) return;
  server = await startApiServer();
  await installCrds(server);
  await server.apply(readFileSync(join(import.meta.dir, `../../deploy/rbac/${ROLE}.yaml`), "utf8"));
  const { kubeconfig } = await server.serviceAccount({ name: "agent", clusterRole: ROLE });
  await server.createNamespace("red");
  store = await openDatastore({ kind: "orchestrator", access: { kubeconfigs: [kubeconfig] } });
  replica = startReplica(store, POLICY_KINDS, {
    signal: stop.signal,
    watches: "per kind",
    report: ({ message }) => problems.push(message),
  });
}, 120_000);
afterAll(async () => {
  stop.abort();
  await replica?.ended;
  await store?.close();
  await server?.stop();
});

const object = (apiVersion: string, kind: string, metadata: object, more: object) =>
  JSON.stringify({ apiVersion, kind, metadata, ...more });

/** The names of the resources of a kind, as the replica has them. */
function namesOf(kind: keyof PolicyValues): readonly string[] {
  const records: Iterable<readonly [string, unknown]> | undefined = replica.snapshot?.[kind];
  return records === undefined ? [] : Array.from(records, ([key]) => key.split("/").slice(6).join("/")).toSorted();
}

const until = (kind: keyof PolicyValues, name: string) =>
  pollUntil(() => namesOf(kind).includes(name), `${kind} to contain ${name}`);
const untilNot = (kind: keyof PolicyValues, name: string) =>
  pollUntil(() => !namesOf(kind).includes(name), `${kind} not to contain ${name}`);

async function admin(args: readonly string[], stdin = ""): Promise<string> {
  const child = Bun.spawn([ADMIN_TOOL, ...args], {
    stdin: new Blob([stdin]),
    stdout: "pipe",
    stderr: "pipe",
    env: { DATASTORE_TYPE: "kubernetes", KUBECONFIG: server.adminKubeconfig },
  });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return code === 0 ? stdout : `failed: ${stderr}`;
}

describe("the node agent under its role", () => {
  testServer(
    "sees everything that policy depends on, and follows it",
    async () => {
      await server.apply(object("v1", "ServiceAccount", { name: "runner", namespace: "red", labels: { a: "b" } }, {}));
      const pod = {
        spec: { nodeName: "n1", serviceAccountName: "runner", containers: [{ name: "main", image: "none" }] },
      };
      const annotations = { [`${identity.annotationPrefix}podIPs`]: "10.0.0.1/32" };
      await server.apply(object("v1", "Pod", { name: "web", namespace: "red", annotations }, pod));
      const spec = { podSelector: {}, ingress: [{ ports: [{ port: 80, endPort: 90 }] }] };
      const policy = (more: object) =>
        object(
          "networking.k8s.io/v1",
          "NetworkPolicy",
          { name: "web", namespace: "red" },
          { spec: { ...spec, ...more } },
        );
      await server.apply(policy({}));
      const labels = { "kubernetes.io/service-name": "web" };
      const slice = { addressType: "IPv4", endpoints: [{ addresses: ["10.0.0.1"] }], ports: [{ port: 80 }] };
      await server.apply(
        object("discovery.k8s.io/v1", "EndpointSlice", { name: "web-1", namespace: "red", labels }, slice),
      );

      await until("profiles", "kns.red");
      await until("profiles", "ksa.red.runner");
      await until("endpoints", "red/n1-k8s-web-eth0");
      await until("networkPolicies", "red/knp.default.web");
      await until("serviceEndpoints", "red/web-1");
      const converted = () =>
        Array.from(replica.snapshot?.networkPolicies ?? [], ([, value]) => value).find(
          ({ metadata }) => metadata.name === "knp.default.web",
        );
      expect(converted()?.spec.ingress).toEqual([
        { action: "Allow", protocol: "TCP", destination: { ports: ["80:90"] } },
      ]);

      await server.apply(policy({ ingress: [] }));
      await pollUntil(() => converted()?.spec.ingress?.length === 0, "the change of the policy");
      await server.kubectl(["label", "namespace", "red", "tier=gold"]);
      await pollUntil(
        () =>
          Array.from(replica.snapshot?.profiles ?? []).some(
            ([, { spec: own }]) => own.labelsToApply?.["pcns.tier"] === "gold",
          ),
        "the label of the namespace",
      );
      await server.kubectl(["delete", "networkpolicy.networking.k8s.io", "web", "--namespace=red"]);
      await untilNot("networkPolicies", "red/knp.default.web");
      await server.kubectl(["delete", "endpointslice", "web-1", "--namespace=red"]);
      await untilNot("serviceEndpoints", "red/web-1");
      expect(problems).toEqual([]);
    },
    120_000,
  );
});

describe("the admin tool", () => {
  const KINDS: Readonly<Record<string, keyof PolicyValues>> = {
    NetworkPolicy: "networkPolicies",
    GlobalNetworkPolicy: "globalNetworkPolicies",
    NetworkSet: "networkSets",
    GlobalNetworkSet: "globalNetworkSets",
    Tier: "tiers",
    HostEndpoint: "hostEndpoints",
    NodeAgentConfiguration: "configurations",
  };
  // The tier first, as the policy needs it.
  const isTier = ({ kind }: { readonly kind: string }) => kind === "Tier";
  const GOOD = [...GOOD_POLICIES.filter(isTier), ...GOOD_POLICIES.filter((good) => !isTier(good))];

  testServer(
    "applies, shows and deletes each kind, and the agent sees it",
    async () => {
      for (const { kind, name = "", spec } of GOOD) {
        const isNamespaced = kind === "NetworkPolicy" || kind === "NetworkSet";
        const metadata = { name, ...(isNamespaced ? { namespace: "red" } : {}) };
        const shown = isNamespaced ? `red/${name}` : name;
        expect(await admin(["apply", "-f", "-"], object(API_VERSION, kind, metadata, { spec }))).toContain("created");
        await until(KINDS[kind] ?? "tiers", shown);
        expect(await admin(["get", kind, "-A", "-o", "name"])).toContain(`${kind.toLowerCase()}/${shown}`);
      }
      const namespaced = ["--namespace", "red"];
      expect(await admin(["describe", "np", "security.web", ...namespaced])).toContain("security.web");
      expect(await admin(["delete", "tier", "security"])).toContain("networkpolicy/red/security.web");
      for (const { kind, name = "" } of GOOD.toReversed().filter((good) => good.name !== "default")) {
        const place = kind === "NetworkPolicy" || kind === "NetworkSet" ? namespaced : [];
        expect(await admin(["delete", kind, name, ...place])).toContain("deleted");
      }
      await untilNot("networkPolicies", "red/security.web");
    },
    120_000,
  );

  testServer("shows the policies of Kubernetes, and says where they can be changed", async () => {
    const policy = { spec: { podSelector: { matchLabels: { app: "web" } } } };
    await server.apply(object("networking.k8s.io/v1", "NetworkPolicy", { name: "shown", namespace: "red" }, policy));

    expect(await admin(["get", "np", "knp.default.shown", "-n", "red"])).toContain("app == 'web'");
    expect(await admin(["delete", "np", "knp.default.shown", "-n", "red"])).toContain(
      "derived from its own NetworkPolicies",
    );
  });
});
