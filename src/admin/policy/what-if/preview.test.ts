import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { type AdminRun, type AdminSurroundings, runInside } from "../../../../test/support/admin-context.ts";
import { imitateNode, WELL } from "../../../../test/support/imitated-flows.ts";
import { seed } from "../../../../test/support/ipam.ts";
import { temporaryDirectory } from "../../../../test/support/temporary-directory.ts";
import { openMemory } from "../../../datastore/memory/memory.ts";
import type { FlowRecord } from "../../../flows/flow-record.ts";
import { API_VERSION, identity } from "../../../identity.ts";
import { resourceKey } from "../../../model/keys.ts";
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE, EXIT_WOULD_DENY } from "../../main/command.ts";

const LABEL = identity.labelPrefix;
const directory = temporaryDirectory("policy-preview");
afterAll(() => directory.remove());
const ENV = {
  ...{ DATASTORE_TYPE: "embedded", DATASTORE_PATH: import.meta.path },
};

let store = openMemory();
beforeEach(async () => {
  store = openMemory();
  for (const namespace of ["shop", "lab"]) {
    const open = { ingress: [{ action: "Allow" }], egress: [{ action: "Allow" }] };
    await put(
      "profiles",
      "Profile",
      { name: `kns.${namespace}` },
      { ...open, labelsToApply: { "pcns.team": namespace } },
    );
  }
  await pod("shop", "web-6d4c-a", "10.0.0.1", "web");
  await pod("shop", "web-6d4c-b", "10.0.0.2", "web");
  await pod("shop", "db-6d4c-a", "10.0.0.3", "db");
  await pod("lab", "probe-6d4c-a", "10.0.0.4", "probe");
});

function put(plural: string, kind: string, metadata: { name: string; namespace?: string }, spec: object) {
  const value = JSON.stringify({ apiVersion: API_VERSION, kind, metadata, spec });
  return seed(store, { kind: "put", key: resourceKey(plural, metadata), value });
}

function pod(namespace: string, name: string, address: string, app: string, more: object = {}) {
  const all = {
    ...more,
    app,
    "pod-template-hash": "6d4c",
    [`${LABEL}namespace`]: namespace,
    [`${LABEL}orchestrator`]: "k8s",
  };
  const metadata = {
    ...{ name: `one-k8s-${name.replaceAll("-", "--")}-eth0`, namespace, generateName: `${app}-6d4c-`, labels: all },
  };
  return put("workloadendpoints", "WorkloadEndpoint", metadata, {
    ...{ orchestrator: "k8s", node: "one", pod: name, endpoint: "eth0", interfaceName: `x${address.at(-1)}` },
    ...{ ipNetworks: [`${address}/32`], profiles: [`kns.${namespace}`] },
  });
}

function document(kind: string, metadata: object, spec: object): string {
  return JSON.stringify({ apiVersion: API_VERSION, kind, metadata, spec });
}

const CLOSE_DB = document(
  "NetworkPolicy",
  { name: "db", namespace: "shop" },
  {
    ...{ selector: "app == 'db'", types: ["Ingress"] },
    ingress: [
      { action: "Allow", protocol: "TCP", source: { selector: "app == 'web'" }, destination: { ports: [5432] } },
    ],
  },
);
const FILES = { "db.json": CLOSE_DB };

function preview(words: string, more: AdminSurroundings = {}): Promise<AdminRun> {
  const env = { ...ENV, ...more.env };
  return runInside(["policy", "preview", ...words.split(" ").filter(Boolean)], { files: FILES, store, ...more, env });
}

function flow(
  id: string,
  from: readonly [string, string, string],
  port: number,
  more: Partial<FlowRecord> = {},
): FlowRecord {
  const [namespace, name, address] = from;
  const owner = (of: string) => ({ kind: "Deployment", name: of.split("-")[0] ?? "" });
  return {
    ...{ id, node: "one", family: 4, protocol: 6, direction: "both", verdict: "allowed", state: "ended" },
    source: { kind: "pod", namespace, name, address, owner: owner(name), port: 40_000 + Number(id), node: "one" },
    destination: {
      ...{
        kind: "pod",
        namespace: "shop",
        name: "db-6d4c-a",
        address: "10.0.0.3",
        owner: owner("db"),
        port,
        node: "one",
      },
    },
    ...{ decisions: [], start: 1, end: 2, sent: { packets: 1, bytes: 1 }, received: { packets: 1, bytes: 1 } },
    ...more,
  };
}

const WEB = ["shop", "web-6d4c-a", "10.0.0.1"] as const;
const PROBE = ["lab", "probe-6d4c-a", "10.0.0.4"] as const;
const RECORDED = [
  flow("1", WEB, 5432),
  flow("2", WEB, 9187),
  flow("3", PROBE, 9187),
  flow("4", PROBE, 9187, { state: "open" }),
  // Of the other node that has seen it.
  { ...flow("4", PROBE, 9187, { state: "open" }), id: "other-4", node: "two" },
];

describe("policy preview", () => {
  test("lists who could no longer reach whom, and which recorded connections that concerns; exit code 3", async () => {
    using node = imitateNode(join(directory.path, "1"), () => [...RECORDED.map((each) => ({ flow: each })), WELL]);
    const { code, stdout, stderr } = await preview("-f db.json", { env: node.env });

    expect({ code, stderr }).toEqual({ code: EXIT_WOULD_DENY, stderr: "" });
    expect(stdout).toMatchInlineSnapshot(`
      "As if:  created networkpolicy/shop/db

      Would be denied:
      FROM                 TO        PACKETS
      lab/probe, outside   shop/db   everything
      shop/web             shop/db   all but TCP 5432

      Would be allowed: nothing

      Flows:  4 connections recorded (--since 1d): 3 would be denied (1 open now), 0 newly allowed

      Recorded connections that would be denied:
      FROM        TO        PACKETS    CONNECTIONS   OPEN NOW
      lab/probe   shop/db   TCP 9187   2             1
      shop/web    shop/db   TCP 9187   1             0

      "
    `);
  });

  test("counts each recorded connection once, also those with the same ports, through Services and without ports", async () => {
    const through = (id: string, address: string) => {
      const { destination, ...own } = flow(id, PROBE, 9187, { node: "two" });
      const service = { kind: "service", namespace: "shop", name: "db", address: "10.96.0.1", port: 80 } as const;
      return { ...own, destination: service, backend: { ...destination, address } };
    };
    const ping = { ...flow("9", PROBE, 0, { protocol: 1, icmp: { type: 8, code: 0 } }), id: "9" };
    const recorded = [
      // As both nodes see it.
      through("1", "10.0.0.3"),
      flow("1", PROBE, 9187),
      // The port of the client is used again: for another workload behind the Service, then for the first one.
      through("1", "10.0.0.9"),
      through("1", "10.0.0.3"),
      ...[ping, { ...ping, id: "10" }, { ...ping, id: "11", icmp: { type: 13, code: 0 } }],
    ];
    using node = imitateNode(join(directory.path, "3"), () => [...recorded.map((each) => ({ flow: each })), WELL]);
    const { stdout } = await preview("-f db.json -o json", { env: node.env });

    const { flows } = JSON.parse(stdout);
    expect(flows.compared).toBe(6);
    expect(flows.denied).toMatchObject([
      { packets: "ICMP", connections: 3 },
      { packets: "TCP 9187", connections: 2 },
    ]);
  });

  test("counts a recorded connection of a pod that is gone, for the exit code too, as far back as asked", async () => {
    const gone = flow("1", ["shop", "job-1", "10.0.0.9"], 5432);
    const recorded = { ...gone, source: { ...gone.source, labels: { app: "job", [`${LABEL}namespace`]: "shop" } } };
    const spec = {
      ...{ selector: "app == 'db'", types: ["Ingress"] },
      ingress: [{ action: "Deny", source: { selector: "app == 'job'" } }, { action: "Allow" }],
    };
    const files = { "jobs.json": document("NetworkPolicy", { name: "jobs", namespace: "shop" }, spec) };
    using node = imitateNode(join(directory.path, "4"), () => [{ flow: recorded }, WELL]);
    const { code, stdout } = await preview("-f jobs.json --since 7d", { files, env: node.env });

    expect(stdout).toContain("Would be denied: nothing\n");
    expect(stdout).toContain("1 connection recorded (--since 7d): 1 would be denied (0 open now), 0 newly allowed");
    expect(code).toBe(EXIT_WOULD_DENY);
    const since = Date.parse("2026-01-02T03:04:05Z") - 7 * 86_400_000;
    expect(node.asked).toEqual([`/flows?since=${since}`]);
  });

  test("counts what was denied and would be allowed, also what was counted without a record", async () => {
    await put("networkpolicies", "NetworkPolicy", { name: "db", namespace: "shop" }, JSON.parse(CLOSE_DB).spec);
    const denied = flow("1", PROBE, 5432, { verdict: "denied", state: "denied", suppressed: 4 });
    using node = imitateNode(join(directory.path, "5"), () => [{ flow: denied }, { flow: flow("2", WEB, 5432) }, WELL]);
    const { code, stdout } = await preview("--without shop/db -o json", { env: node.env });

    expect(code).toBe(EXIT_OK);
    expect(JSON.parse(stdout).flows).toMatchObject({
      ...{ compared: 2, denied: [] },
      allowed: [{ from: "lab/probe", to: "shop/db", packets: "TCP 5432", connections: 5, open: 0 }],
    });
  });

  test("opens what a deleted policy closed; exit code 0, and 3 the other way round", async () => {
    await put("networkpolicies", "NetworkPolicy", { name: "db", namespace: "shop" }, JSON.parse(CLOSE_DB).spec);
    const { code, stdout, stderr } = await preview("--without shop/db");

    expect({ code, stderr }).toEqual({ code: EXIT_OK, stderr: "" });
    expect(stdout).toContain("Would be denied: nothing\n");
    expect(stdout).toMatch(/lab\/probe, outside +shop\/db +everything\n/);
    expect(stdout).toMatch(/shop\/web +shop\/db +all but TCP 5432\n/);
    expect(stdout).toMatch(/Note: +recorded connections are not compared: .*it records none/);
    const unchanged = await preview("-f db.json");
    expect([unchanged.code, unchanged.stdout]).toEqual([EXIT_OK, expect.stringContaining("nothing changes")]);
  });

  test("has everything in its JSON", async () => {
    using node = imitateNode(join(directory.path, "2"), () => [...RECORDED.map((each) => ({ flow: each })), WELL]);
    const { code, stdout } = await preview("-f db.json -o json", { env: node.env });

    expect(code).toBe(EXIT_WOULD_DENY);
    expect(JSON.parse(stdout)).toMatchObject({
      asIf: [{ change: "created", reference: "networkpolicy/shop/db" }],
      denied: [
        { from: ["lab/probe", "outside"], to: ["shop/db"], packets: "everything" },
        { from: ["shop/web"], to: ["shop/db"], packets: "all but TCP 5432" },
      ],
      allowed: [],
      flows: {
        compared: 4,
        denied: [
          { from: "lab/probe", to: "shop/db", packets: "TCP 9187", connections: 2, open: 1 },
          { from: "shop/web", to: "shop/db", packets: "TCP 9187", connections: 1, open: 0 },
        ],
      },
    });
  });

  test("--staged: as if all staged policies were promoted, also those of files", async () => {
    const { spec } = JSON.parse(CLOSE_DB);
    const name = { name: "db", namespace: "shop" };
    await put("stagednetworkpolicies", "StagedNetworkPolicy", name, spec);
    const { code, stdout } = await preview("--staged");
    expect([code, stdout]).toEqual([EXIT_WOULD_DENY, (await preview("-f db.json")).stdout]);

    await put("networkpolicies", "NetworkPolicy", name, spec);
    expect((await preview("--staged")).stdout).toContain("nothing changes");
    const gone = document("StagedNetworkPolicy", name, { stagedAction: "Delete" });
    const opened = await preview("--staged -f gone.json", { files: { "gone.json": gone } });
    expect(opened.stdout).toStartWith("As if:  deleted networkpolicy/shop/db\n");
    expect(opened.stdout).toMatch(/shop\/web +shop\/db +all but TCP 5432\n/);
    const without = await preview("-f gone.json", { files: { "gone.json": gone } });
    expect(without.stderr).toContain("is left out: it is not enforced (as if it were: --staged)");
  });

  test("--staged: one of the orchestrator's fields, and a tier that staged policies need", async () => {
    const all = { podSelector: {}, policyTypes: ["Ingress"] };
    await put(
      "stagedkubernetesnetworkpolicies",
      "StagedKubernetesNetworkPolicy",
      { name: "no", namespace: "lab" },
      all,
    );
    const { code, stdout } = await preview("--staged -o json");
    expect(code).toBe(EXIT_WOULD_DENY);
    expect(JSON.parse(stdout).asIf).toMatchObject([
      { change: "created", reference: "networkpolicy/lab/knp.default.no" },
    ]);
    expect(JSON.parse(stdout).denied).toMatchObject([{ to: ["lab/probe"], packets: "everything" }]);

    await put("stagedglobalnetworkpolicies", "StagedGlobalNetworkPolicy", { name: "x.deny" }, { tier: "x" });
    expect((await preview("--staged")).code).toBe(EXIT_FAILED);
  });

  test("the first policy of a cluster also makes profiles count", async () => {
    await put("profiles", "Profile", { name: "kns.lab" }, { egress: [{ action: "Allow" }] });
    const { stdout } = await preview("-f db.json");
    expect(stdout).toMatch(/shop\/\*, outside +lab\/probe +everything\n/);
  });

  test("says of a policy that it selects nothing, and why", async () => {
    const typo = CLOSE_DB.replaceAll("shop", "shpo");
    const { code, stdout } = await preview("-f typo.json", { files: { "typo.json": typo } });
    expect(code).toBe(EXIT_OK);
    expect(stdout).toMatch(
      /Note: +networkpolicy\/shpo\/db selects nothing now: namespace "shpo" has no endpoint; did you mean "shop"\?\n/,
    );
  });

  test("sums up many rows by namespace, unless all are asked for", async () => {
    const rules = Array.from({ length: 70 }, (_, index) => ({
      ...{ action: "Allow", protocol: "TCP", destination: { ports: [index + 1] } },
      source: { nets: [`192.0.2.${index}/32`] },
    }));
    const many = document("NetworkPolicy", { name: "many", namespace: "shop" }, { types: ["Ingress"], ingress: rules });
    const files = { "many.json": many };
    const summed = await preview("-f many.json", { files });
    expect(summed.stdout).toMatch(/^all workloads, outside +shop +everything$/m);
    expect(summed.stdout.split("\n").length).toBeLessThan(12);
    expect(summed.stderr).toContain("--by group shows all");
    const all = await preview("-f many.json --by group", { files });
    expect(all.stdout).toMatch(/^192.0.2.7\/32 +shop\/\* +all but TCP 8$/m);
    expect([all.code, all.stderr, summed.code]).toEqual([EXIT_WOULD_DENY, "", EXIT_WOULD_DENY]);
  });

  test("calls a group of which all parts are concerned by its name", async () => {
    for (const [name, address, zone] of [
      ["a", "10.0.0.5", "x"],
      ["b", "10.0.0.6", "y"],
    ] as const)
      await pod("lab", `job-${name}`, address, "job", { zone });
    const { spec, metadata } = JSON.parse(CLOSE_DB);
    const zones = ["x", "y"].map((zone, index) => ({
      ...{ action: "Allow", protocol: "UDP", destination: { ports: [53 + index] } },
      source: { namespaceSelector: "all()", selector: `zone == '${zone}'` },
    }));
    const files = { "db.json": document("NetworkPolicy", metadata, { ...spec, ingress: [...spec.ingress, ...zones] }) };
    await put("networkpolicies", "NetworkPolicy", metadata, { ...spec, ingress: [...spec.ingress, ...zones] });
    const { stdout } = await preview("-f closed.json", {
      files: { ...files, "closed.json": document("NetworkPolicy", metadata, { ...spec, ingress: [] }) },
    });
    expect(stdout).toMatch(/^lab\/job \(zone=x\) +shop\/db +UDP 53$/m);
    const all = document("NetworkPolicy", metadata, {
      ...spec,
      ingress: [...spec.ingress, ...zones, { action: "Allow" }],
    });
    const opened = await preview("-f all.json", { files: { "all.json": all } });
    expect(opened.stdout).toMatch(/^lab\/probe, outside +shop\/db +everything$/m);
    const web = document(
      "NetworkPolicy",
      { name: "web", namespace: "shop" },
      {
        ...{ selector: "app == 'web'", types: ["Ingress"] },
        ingress: [{ action: "Allow", source: { selector: "app != 'job'", namespaceSelector: "all()" } }],
      },
    );
    const closed = await preview("-f web.json", { files: { "web.json": web } });
    expect(closed.stdout).toMatch(/^lab\/job, outside +shop\/web +everything$/m);
  });

  test("fits 80 columns, and refuses a call without a change and files that apply refuses", async () => {
    const { stdout } = await preview("-f db.json", { isTerminal: true, terminalWidth: 80, env: { NO_COLOR: "1" } });
    expect(Math.max(...stdout.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
    expect((await preview("")).code).toBe(EXIT_USAGE);
    expect((await preview("-f none.json")).code).toBe(EXIT_FAILED);
  });
});

describe("policy matrix", () => {
  const matrix = (words: string, more: AdminSurroundings = {}) =>
    runInside(["policy", "matrix", ...words.split(" ").filter(Boolean)], { files: FILES, store, env: ENV, ...more });

  test("shows who may reach whom, on 80 columns too", async () => {
    await put("networkpolicies", "NetworkPolicy", { name: "db", namespace: "shop" }, JSON.parse(CLOSE_DB).spec);
    const { code, stdout } = await matrix("", { isTerminal: true, terminalWidth: 80, env: { ...ENV, NO_COLOR: "1" } });

    expect(code).toBe(EXIT_OK);
    expect(stdout).toMatchInlineSnapshot(`
      "FROM                     TO                    MAY SEND
      all workloads, outside   lab/probe, shop/web   everything
      all workloads            outside               everything
      shop/web                 shop/db               TCP 5432
      "
    `);
    const ofLab = await matrix("-n lab -o csv");
    expect(ofLab.stdout).toMatchInlineSnapshot(`
      "from,to,allowed
      lab/probe,shop/db,nothing
      lab/probe,shop/web,everything
      lab/probe,outside,everything
      shop/db,lab/probe,everything
      shop/web,lab/probe,everything
      outside,lab/probe,everything
      "
    `);
  });

  test("of a namespace has only pairs with an end in it, and says that it has no workload", async () => {
    expect((await matrix("-n shop")).stdout).toMatchInlineSnapshot(`
      "FROM                     TO                   MAY SEND
      shop/*                   lab/probe, outside   everything
      all workloads, outside   shop/*               everything
      "
    `);
    expect(await matrix("-n shpo")).toMatchObject({
      ...{ code: EXIT_OK, stdout: "", stderr: expect.stringContaining('namespace "shpo" has no workload') },
    });
  });

  test("breaks long lists of groups on a narrow terminal, and shortens none", async () => {
    for (const [index, app] of ["cache", "gateway", "settlement", "billing"].entries())
      await pod("lab", `${app}-6d4c-a`, `10.0.0.1${index}`, app);
    const { stdout } = await matrix("-f db.json", {
      isTerminal: true,
      terminalWidth: 50,
      env: { ...ENV, NO_COLOR: "1" },
    });
    expect(stdout).toMatchInlineSnapshot(`
      "As if:  created networkpolicy/shop/db

      CHANGE     FROM                    TO
      - denied   lab/*, outside          shop/db
        MAY SEND: everything
      - denied   shop/web                shop/db
        MAY SEND: all but TCP 5432
                 all workloads,          lab/*, shop/web
                 outside
        MAY SEND: everything
                 all workloads           outside
        MAY SEND: everything
                 shop/web                shop/db
        MAY SEND: TCP 5432
      "
    `);
  });

  test("compares a change with what is stored, in every format", async () => {
    const { stdout } = await matrix("-f db.json --by namespace");
    expect(stdout).toMatchInlineSnapshot(`
      "As if:  created networkpolicy/shop/db

      CHANGE    FROM      TO        MAY SEND
      changed   lab       shop      everything, for some (before: everything)
      changed   shop      shop      everything, for some (before: everything)
      changed   outside   shop      everything, for some (before: everything)
                lab       outside   everything
                shop      lab       everything
                shop      outside   everything
                outside   lab       everything
      "
    `);
    const json = JSON.parse((await matrix("-f db.json -o json")).stdout);
    expect(json.cells).toContainEqual({
      ...{ from: "shop/web", to: "shop/db", before: "everything", after: "TCP 5432", changed: true },
    });
    const csv = await matrix("-f db.json -o csv");
    expect(csv.stdout).toContain("lab/probe,shop/db,everything,nothing,yes\r\n");
    const svg = (await matrix("-f db.json -o svg")).stdout;
    expect(svg).toContain("<title>lab/probe to shop/db: before: everything; after: nothing</title>");
  });
});
