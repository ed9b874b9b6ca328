import { describe, expect, test } from "bun:test";
import { runInside } from "../../../test/support/admin-context.ts";
import type { SessionStatus } from "../../routing/bird/sessions-status.ts";
import type { KernelRoute, RoutingFacts } from "../host/facts.ts";

const mesh: SessionStatus = {
  ...{ name: "Mesh_10_0_0_2", type: "node-to-node mesh", peer: "node-2", address: "10.0.0.2", peerAs: "64512" },
  ...{ state: "up", since: "2026-11-16 12:03:57", info: "Established", routes: { imported: 3, exported: 2 } },
  isLimitHit: false,
};
const route: KernelRoute = {
  ...{ family: 4, destination: "10.244.2.0/26", writer: "BIRD", kind: "unicast", gateway: "10.0.0.2", link: "eth0" },
};
const learned = {
  ...{ destination: "10.244.2.0/26", kind: "unicast", hops: [{ gateway: "10.0.0.2", link: "eth0" }], source: "BGP" },
  ...{ protocol: "Mesh_10_0_0_2", since: "", isBest: true, asPath: "" },
};
const running: RoutingFacts = {
  isAgentRunning: true,
  state: { kind: "running", problems: ["peer-7: no address"] },
  bird: {
    ...{ version: "2.0.12", routerId: "10.0.0.1", startedAt: "2026-11-16 12:00:00", isRecovering: false },
    sessions: [mesh],
    routes: [
      learned,
      { ...learned, destination: "10.245.2.0/26" },
      { ...learned, destination: "10.244.1.0/26", kind: "blackhole", hops: [], protocol: "own4", source: "static" },
      { ...learned, destination: "10.0.0.0/24", protocol: "direct1", source: "device" },
    ],
  },
  kernelRoutes: [
    route,
    { family: 4, destination: "10.244.1.0/26", writer: "node agent", kind: "blackhole" },
    { ...route, destination: "10.245.2.0/26", writer: "node agent", gateway: "10.245.2.0", link: "vxlan.vendor" },
    { family: 4, destination: "10.244.1.5/32", writer: "node agent", kind: "unicast", link: "vend123" },
  ],
  refusedClaims: [],
  routingProblems: [],
  policyProblems: [],
  datastore: undefined,
};
const stopped: RoutingFacts = { ...running, bird: undefined };

describe("node status", () => {
  test("shows sessions and routes", async () => {
    const { code, stdout } = await runInside(["node", "status"], { routingFacts: running });

    expect(stdout).toBe(`Node agent: running
BGP: BIRD 2.0.12 is running, router ID 10.0.0.1, since 2026-11-16 12:00:00
Problem: peer-7: no address

IPv4 BGP status
PEER ADDRESS   PEER TYPE           STATE   SINCE                 INFO          PEER     RECEIVED   SENT
10.0.0.2       node-to-node mesh   up      2026-11-16 12:03:57   Established   node-2   3          2

IPv6 BGP status
No IPv6 peers found.

Routes
FAMILY   MADE BY      WAY                 ROUTES
IPv4     BIRD         eth0                1
IPv4     node agent   own blocks          1
IPv4     node agent   pods of this node   1
IPv4     node agent   vxlan.vendor        1
`);
    expect(code).toBe(0);
  });

  test("names a session whose peer has sent too many routes, and the remedy", async () => {
    const bird = running.bird && { ...running.bird, sessions: [{ ...mesh, isLimitHit: true }] };
    const { stdout } = await runInside(["node", "status"], { routingFacts: { ...running, bird } });

    expect(stdout).toContain("Problem: node-2 has sent more routes than are accepted, and some are missing");
    expect(stdout).toContain("birdc -s /var/run/vendor/bird/bird.ctl restart Mesh_10_0_0_2");
  });

  test.each([
    [
      "it is not needed",
      { kind: "not needed", reason: "BGP is disabled", problems: [] },
      0,
      "not needed, BGP is disabled",
    ],
    ["the program is missing", { kind: "failed", reason: "install bird2", problems: [] }, 1, "install bird2"],
    ["it has died", { kind: "running", problems: [] }, 1, "it has ended"],
    ["nothing is known", undefined, 0, "has not started it"],
  ] as const)("says why BIRD does not run if %s", async (_, state, expected, text) => {
    const routingFacts = { ...stopped, state: state && { ...state, problems: [] } };
    const { code, stdout } = await runInside(["node", "status"], { routingFacts });

    expect(stdout).toContain(`BGP: BIRD is not running: `);
    expect(stdout).toContain(text);
    expect(code).toBe(expected);
  });

  test("fails if the node agent does not run, and still shows the sessions", async () => {
    const { code, stdout } = await runInside(["node", "status"], {
      routingFacts: { ...running, isAgentRunning: false },
    });

    expect(code).toBe(1);
    expect(stdout).toContain("Node agent: not running");
    expect(stdout).toContain("Established");
  });

  test("names what only annotations of pods claim", async () => {
    const claim = "address 10.0.0.9/32: neither IPAM, the kubelet nor an ADD on its node says so";
    const refusedClaims = [{ namespace: "mallory", pod: "evil", refused: [claim] }];
    const routingFacts = { ...running, refusedClaims };
    const { stdout } = await runInside(["node", "status"], { routingFacts });
    const json = await runInside(["node", "status", "-o", "json"], { routingFacts });

    expect(stdout).toContain(`Annotations without effect\nPOD            CLAIM\nmallory/evil   ${claim}\n`);
    expect(JSON.parse(json.stdout).annotationsWithoutEffect).toEqual(refusedClaims);
  });

  test("names records of other nodes that do not count", async () => {
    const problem = 'Block 10.0.0.5/32 of node "node-4" does not count: …';
    const routingFacts = { ...running, routingProblems: [problem] };
    const { stdout } = await runInside(["node", "status"], { routingFacts });
    const json = await runInside(["node", "status", "-o", "json"], { routingFacts });

    expect(stdout).toEndWith(`Problem: ${problem}\n`);
    expect(JSON.parse(json.stdout).routingProblems).toEqual([problem]);
  });

  test("names policies that deny because they cannot be carried out", async () => {
    const problem = '"mallory/large" denies more than it says: it has 7000 different selectors, …';
    const routingFacts = { ...running, policyProblems: [problem] };
    const { stdout } = await runInside(["node", "status"], { routingFacts });
    const json = await runInside(["node", "status", "-o", "json"], { routingFacts });

    expect(stdout).toEndWith(`\nNetwork policy\nProblem: ${problem}\n`);
    expect(JSON.parse(json.stdout).policyProblems).toEqual([problem]);
  });

  test.each([
    ["in sync", {}, "in sync, last heard 12 s ago"],
    ["stale", { failure: "no route" }, "not followed, last heard 12 s ago: no route"],
    ["listing", { failure: "no route" }, "not read yet, since 12 s: no route"],
  ] as const)("says how old what the agent knows is: %s", async (state, more, line) => {
    const datastore = { state, knownAt: "2026-11-16T12:00:00.000Z", ...more };
    const surroundings = { routingFacts: { ...running, datastore }, now: new Date("2026-11-16T12:00:12.000Z") };
    const { stdout } = await runInside(["node", "status"], surroundings);
    const json = await runInside(["node", "status", "-o", "json"], surroundings);

    expect(stdout).toContain(`Node agent: running\nDatastore: ${line}\nBGP: `);
    expect(JSON.parse(json.stdout).datastore).toEqual({ ...datastore, ageSeconds: 12 });
  });

  test("prints JSON for scripts", async () => {
    const { stdout } = await runInside(["node", "status", "-o", "json"], { routingFacts: running });

    expect(JSON.parse(stdout)).toEqual({
      nodeAgent: "running",
      bgp: {
        ...{ state: "running", version: "2.0.12", routerID: "10.0.0.1", since: "2026-11-16 12:00:00" },
        ...{ isRecovering: false, problems: ["peer-7: no address"], sessions: [mesh] },
      },
      routes: expect.arrayContaining([{ family: "IPv4", madeBy: "BIRD", way: "eth0", routes: 1 }]),
    });
  });
});

describe("bgp routes", () => {
  test("shows learned and announced routes, and whether the kernel has them", async () => {
    const { code, stdout } = await runInside(["bgp", "routes"], { routingFacts: running });

    expect(stdout).toBe(`DESTINATION     NEXT HOP   INTERFACE   LEARNED FROM                          IN FIB
10.244.2.0/26   10.0.0.2   eth0        node-to-node mesh 10.0.0.2 (node-2)   yes
10.245.2.0/26   10.0.0.2   eth0        node-to-node mesh 10.0.0.2 (node-2)   no
10.244.1.0/26                          this node                             no
`);
    expect(code).toBe(0);
  });

  test("shows what a dead BIRD left in the kernel", async () => {
    const { code, stdout, stderr } = await runInside(["bgp", "routes", "-o", "json"], { routingFacts: stopped });

    expect(JSON.parse(stdout).routes).toEqual([
      expect.objectContaining({ destination: "10.244.2.0/26", nextHop: ["10.0.0.2"], inFib: true }),
    ]);
    expect(stderr).toContain("BIRD is not running");
    expect(code).toBe(1);
  });
});
