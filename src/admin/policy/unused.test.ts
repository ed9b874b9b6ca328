import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { type AdminSurroundings, runInside } from "../../../test/support/admin-context.ts";
import { type Answering, imitateNode, rollup, START, WELL } from "../../../test/support/imitated-flows.ts";
import { temporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { identity } from "../../identity.ts";
import { ENDPOINT, NETWORK_POLICY } from "../../model/kinds.ts";
import { networkPolicy } from "../../model/network-policy.ts";
import type { PolicyRule } from "../../model/policy-rule.ts";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";
import { EXIT_OK, EXIT_USAGE } from "../main/command.ts";

const directory = temporaryDirectory("policy-unused");
const store = openMemory();
let hosts = 0;
const DAY = 86_400_000;

const FROM_WEB: PolicyRule = { action: "Allow", protocol: "TCP", source: { nets: ["10.0.0.0/24"] } };
const INGRESS: readonly PolicyRule[] = [
  FROM_WEB,
  { ...FROM_WEB, source: { nets: ["10.0.0.7/32"] } },
  { ...FROM_WEB, source: { selector: "app == 'nothing'" } },
  { ...FROM_WEB, protocol: "UDP" },
];

beforeAll(async () => {
  const put = (key: string, value: string) => store.commit([{ kind: "put", key, value }]);
  const metadata = {
    ...{ namespace: "shop", name: "here-k8s-db-eth0" },
    labels: { app: "db", [`${identity.labelPrefix}namespace`]: "shop" },
  };
  const spec = { orchestrator: "k8s", node: "here", pod: "db", endpoint: "eth0", profiles: ["kns.shop"] };
  await put(ENDPOINT.key(metadata), workloadEndpoint.write(workloadEndpoint.make(metadata, spec)));
  for (const [name, selector] of [
    ["db", "app == 'db'"],
    ["gone", "app == 'gone'"],
  ] as const) {
    const policy = { name, namespace: "shop" };
    const ofPolicy = { tier: "default", selector, ingress: name === "db" ? [...INGRESS] : [] };
    await put(NETWORK_POLICY.key(policy), networkPolicy.write(networkPolicy.make(policy, ofPolicy)));
  }
});
afterAll(() => directory.remove());

async function unused(words: string, answers: readonly Answering[] | undefined, more: AdminSurroundings = {}) {
  hosts += 1;
  const place = join(directory.path, String(hosts));
  const env = { [`${identity.environmentPrefix}RUN_DIRECTORY`]: place };
  using node = answers === undefined ? undefined : imitateNode(place, answers[0] ?? (() => []));
  return await runInside(["policy", "unused", ...words.split(" ").filter((word) => word !== "")], {
    ...{ store, now: new Date(START + DAY), env: node?.env ?? env },
    ...more,
  });
}

const count = (rule: number, packets: number) => ({
  ...{ chain: "c", comment: `shop/db ingress ${rule}`, packets },
  bytes: 0,
});
const counts = (...packets: readonly number[]): AdminSurroundings => ({
  policyCounts: { counts: packets.map((each, rule) => count(rule, each)), interfacesOf: new Map() },
});

async function found(words: string, answers: Parameters<typeof unused>[1], more?: AdminSurroundings) {
  const { code, stdout, stderr } = await unused(`${words} -o json`, answers, more);
  const { unused: all, ...coverage } = JSON.parse(stdout);
  const rows = all.map((each: Record<string, unknown>) => [each["policy"], each["rule"], each["finding"]].join(" "));
  return { code, rows, coverage, stderr };
}

const NEVER = ["shop/db  selects nothing", "shop/db 1 can never match"];
const IDLE = "shop/gone  selects nothing";

describe("policy unused", () => {
  test("says what can never match and what selects nothing without any packet being known", async () => {
    const { code, rows, stderr } = await found("", undefined);

    expect([code, rows]).toEqual([EXIT_OK, [...NEVER, IDLE]]);
    expect(stderr).toContain("no flows are known");
  });

  test("says which rules had no packet, as long as the flows cover the time", async () => {
    const answers = [() => [rollup({ rules: ["workload ingress: shop/db ingress 0"] }), WELL]];
    const { rows, coverage } = await found("--for 1d", answers);

    expect(rows).toEqual([...NEVER, "shop/db 2 no packet", "shop/db 3 no packet", IDLE]);
    expect(coverage).toMatchObject({ counters: false });
  });

  test("does not claim that a rule had none if its counter has some from before the flows", async () => {
    const answers = [() => [rollup({ rules: ["workload ingress: shop/db ingress 0"] }), WELL]];
    const { rows, coverage, stderr } = await found("--for 7d", answers, counts(1, 0, 0, 5));

    expect(rows).toEqual([...NEVER, "shop/db 2 no packet", IDLE]);
    expect(coverage).toMatchObject({ counters: true, flowsFrom: "2026-01-02T03:04:00.000Z" });
    expect(stderr).toContain("as asked for");
  });

  test("claims nothing by flows of which some are hidden", async () => {
    const hidden = rollup({ rules: [], source: { kind: "hidden" } });

    expect((await found("--for 1d", [() => [hidden, WELL]])).rows).toEqual([...NEVER, IDLE]);
  });

  test("knows only this node without flows", async () => {
    const { rows } = await found("", undefined, counts(1, 0, 0));

    expect(rows).toEqual([...NEVER, "shop/db 2 no packet", IDLE]);
  });

  test("is about the policies of a namespace if asked", async () => {
    expect((await found("-n shop", undefined)).rows).toEqual([...NEVER, IDLE]);
    const { code, stdout, stderr } = await unused("-n lab", undefined);
    expect([code, stdout]).toEqual([EXIT_OK, ""]);
    expect(stderr).toContain('Nothing unused was found in 0 policies of namespace "lab".');
  });

  test("is a table, and refuses what is not a time", async () => {
    const { stdout } = await unused("", undefined);

    expect(stdout).toMatch(/^shop\/db +ingress +2 +can never match +rule 1 of shop\/db matches all that it matches$/m);
    expect((await unused("--for week", undefined)).code).toBe(EXIT_USAGE);
  });
});
