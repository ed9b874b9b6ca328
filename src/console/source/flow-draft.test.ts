/** Drafts as readers with different rights see them, over a datastore of the console, and over the API with the reader's own token. */
import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { DENIED } from "../../../test/support/imitated-flows.ts";
import { seed } from "../../../test/support/ipam.ts";
import { startFakeApi } from "../../../test/support/kube-api/fake-api.ts";
import { EVERYTHING, type Rule, readersCluster } from "../../../test/support/readers.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import type { FlowAnswer } from "../../flows/flow-answer.ts";
import { API_VERSION, identity } from "../../identity.ts";
import { endpointLabels } from "../../model/endpoint-labels.ts";
import { ENDPOINT, NETWORK_POLICY } from "../../model/kinds.ts";
import { networkPolicy } from "../../model/network-policy.ts";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";
import { policyDraftSchema } from "../api/policy-draft.ts";
import { clusterSources } from "./cluster-source.ts";

const { signal } = new AbortController();
const FLOW = { ...DENIED, destination: { ...DENIED.destination, labels: { app: "db" } } };
const ANSWERS: readonly FlowAnswer[] = [{ explanation: { flow: FLOW, missing: [] } }];
const READS: Rule = { resources: ["*"] };
const WRITES: Rule = { resources: ["networkpolicies"], verbs: ["create"], namespaces: ["shop"] };

const CLOSED = networkPolicy.make({ name: "db", namespace: "shop" }, { tier: "default", selector: "all()" });
const POD = workloadEndpoint.make(
  {
    ...{ name: "node--2-k8s-db--0-eth0", namespace: "shop" },
    labels: endpointLabels({ app: "db" }, { namespace: "shop", orchestrator: "k8s" }),
  },
  { orchestrator: "k8s", node: "node-2", pod: "db-0", endpoint: "eth0", ipNetworks: ["10.0.1.7/32"] },
);

async function etcdWith(...more: readonly ReturnType<typeof networkPolicy.make>[]) {
  const etcd = openMemory();
  await seed(
    etcd,
    { kind: "put", key: ENDPOINT.key(POD.metadata), value: workloadEndpoint.write(POD) },
    ...[CLOSED, ...more].map((policy) => ({
      ...({ kind: "put", key: NETWORK_POLICY.key(policy.metadata) } as const),
      value: networkPolicy.write(policy),
    })),
  );
  return etcd;
}

async function open(rules: readonly Rule[], etcd?: ReturnType<typeof openMemory>, api = startFakeApi()) {
  const readers = readersCluster(api, { reader: { user: "reader", rules } }, () => ANSWERS);
  const { openClient } = readers;
  const clock = { now: () => new Date("2026-01-02T03:04:05Z"), wait: (ms: number) => Bun.sleep(ms), uuid: () => "u-1" };
  const source = await clusterSources({ version: "v1", server: {}, ...clock, openClient, ...(etcd && { etcd }) })(
    "reader",
    signal,
  );
  return { source, readers };
}

describe("draft()", () => {
  test("is what the judge allows, with the command that writes the same", async () => {
    const { source } = await open(EVERYTHING, await etcdWith());
    const draft = await source.draft("n2-9", signal);

    expect(v.parse(policyDraftSchema, draft)).toEqual(draft);
    expect([draft.verdict, draft.notes]).toEqual(["allowed", []]);
    expect(draft.command).toBe(
      `${identity.adminTool} policy draft --flow n2-9 --enforced | ${identity.adminTool} apply -f -`,
    );
    expect(Bun.YAML.parse(draft.yaml)).toMatchObject({ kind: "NetworkPolicy", metadata: { namespace: "shop" } });
  });

  test("does not promise anything if the reader may not list what could decide otherwise", async () => {
    const few: readonly Rule[] = [{ resources: ["workloadendpoints", "networkpolicies", "flows", "explanation"] }];
    const draft = await (await open(few, await etcdWith())).source.draft("n2-9", signal);

    expect(draft.verdict).toBe("depends");
    expect(draft.notes.at(-1)).toContain("global network policies");
  });
});

describe("applyDraft()", () => {
  test("creates what was shown, once", async () => {
    const etcd = await etcdWith();
    const { source } = await open([READS, WRITES], etcd);
    const draft = await source.draft("n2-9", signal);
    const { applied } = await source.applyDraft("n2-9", draft, signal);
    const [created] = applied;

    expect(applied).toEqual([{ title: "NetworkPolicy shop/allow-db-0-from-outside", outcome: "created" }]);
    const [entry] = (
      await etcd.read([
        { kind: "key", key: NETWORK_POLICY.key({ name: created?.title.split("/")[1] ?? "", namespace: "shop" }) },
      ])
    ).answers.flat();
    expect(entry?.value).toContain("203.0.113.77/32");
    expect(await source.draft("n2-9", signal)).toMatchObject({ yaml: "", verdict: "allowed" });
    await expect(source.applyDraft("n2-9", draft, signal)).rejects.toMatchObject({ kind: "resource-changed" });
  });

  test("refuses another draft than that of the flow", async () => {
    const { source } = await open([READS, WRITES], await etcdWith());
    const draft = await source.draft("n2-9", signal);
    const changed = { ...draft, yaml: draft.yaml.replace("203.0.113.77/32", "0.0.0.0/0") };

    expect(changed.yaml).not.toBe(draft.yaml);
    await expect(source.applyDraft("n2-9", changed, signal)).rejects.toMatchObject({ kind: "resource-changed" });
  });

  test("writes nothing for who may not create policies in that namespace, whatever the console may", async () => {
    const etcd = await etcdWith();
    for (const rules of [[READS], [READS, { ...WRITES, namespaces: ["bank"] }]]) {
      const { source } = await open(rules, etcd);
      const draft = await source.draft("n2-9", signal);

      await expect(source.applyDraft("n2-9", draft, signal)).rejects.toThrow("you may not");
    }
    const { answers } = await etcd.read([{ kind: "prefix", prefix: NETWORK_POLICY.prefix() }]);
    expect(answers.flat().length).toBe(1);
  });

  test("with Kubernetes as the datastore is a request with the reader's token, which the API server may refuse", async () => {
    const api = startFakeApi({ watchList: "refused" });
    const place = `/apis/${API_VERSION}/namespaces/shop/networkpolicies`;
    const post = (path: string, object: object) => api.respond({ method: "POST", path, body: JSON.stringify(object) });
    post(place, { metadata: { name: "db", namespace: "shop" }, spec: CLOSED.spec });
    post("/api/v1/namespaces/shop/pods", {
      ...{ metadata: { name: "db-0", namespace: "shop", labels: { app: "db" } }, spec: { nodeName: "node-2" } },
      status: { phase: "Running", podIP: "10.0.1.7", podIPs: [{ ip: "10.0.1.7" }] },
    });
    post("/api/v1/namespaces", { metadata: { name: "shop" } });
    const refused = await open([READS], undefined, api);
    const draft = await refused.source.draft("n2-9", signal);
    await expect(refused.source.applyDraft("n2-9", draft, signal)).rejects.toThrow("403");
    expect(api.list(place).length).toBe(1);

    const { source, readers } = await open([READS, WRITES], undefined, api);
    expect((await source.applyDraft("n2-9", draft, signal)).applied.length).toBe(1);
    expect(api.list(place).length).toBe(2);
    expect(readers.requests).toContain(`reader POST ${place}`);
  });
});
