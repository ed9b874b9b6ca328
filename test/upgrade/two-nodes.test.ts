/**
 * Two real nodes that run the previous build of this product are upgraded by `vendorctl upgrade`, while pods ping each other
 * across the nodes and beside a policy: no packet between pods that are not restarted is lost, no denied packet gets through.
 * A pod that keeps its addresses and is deleted before has them again afterwards.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import { annotationKey } from "../../src/plugin/annotations.ts";
import { VERSION } from "../../src/version.ts";
import { type InstalledCluster, installedCluster } from "../install/installed-tests.ts";
import { addressesIn, untilReachEachOther } from "../kube/across-nodes-tests.ts";
import { policyManifest, untilConnects } from "../support/across-nodes.ts";
import { bareClusterProblem, openBareControlPlane, POD_RANGES } from "../support/bare-cluster.ts";
import type { ApiServer } from "../support/kube-apiserver.ts";
import type { Pod } from "../support/kube-pods.ts";
import { type LongPings, startLongPings } from "../support/long-pings.ts";
import { manifestText, manifestTextOf } from "../support/manifest-text.ts";
import { testNeeding } from "../support/needs.ts";
import { buildRelease, imageOfRelease, type OtherRelease } from "../support/next-release.ts";
import { installationOn, untilInstalled } from "../support/operator-install.ts";
import { NAMESPACE } from "../support/pods-in-namespace.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";

const problem = bareClusterProblem() ?? proofSize({ everyDay: "only in `make soak`", soak: undefined });
const testCluster = testNeeding(problem);
setDefaultTimeout(600_000);

/** Same code, older version stamp. */
const PREVIOUS = "3.28.9";
const ADMIN_TOOL = join(import.meta.dir, "../../dist/bin", identity.adminTool);
/** Longer than a node agent needs to stop and start. */
const MORE_PINGS = 500;

/** "a" may reach "b"; "c" beside "b" and "d" beside "a" may not. */
const PODS = { a: "node-1", b: "node-2", c: "node-2", d: "node-1" };

interface Way {
  readonly title: string;
  readonly namespace: string;
  /** Of `upgrade plan`. */
  readonly options: readonly string[];
  install(server: ApiServer): Promise<unknown>;
}

const WAYS: readonly Way[] = [
  {
    title: "the orchestrator's API, installed by the operator",
    namespace: identity.systemNamespace,
    options: [],
    async install(server) {
      await server.kubectl(["apply", "--server-side", "--filename=-"], manifestText("operator-crds.yaml"));
      await server.kubectl(["apply", "--server-side", "--filename=-"], manifestTextOf(PREVIOUS, "operator.yaml"));
      await server.apply(JSON.stringify(installationOn(server, "kubernetes")));
      await untilInstalled(server);
    },
  },
  {
    title: "etcd, installed by a manifest",
    namespace: "kube-system",
    // Nothing says what the stock manifest was: it was applied on the server, and is not one of the bundled ones.
    options: ["--on-conflict", "mine"],
    async install(server) {
      const manifest = edited(manifestTextOf(PREVIOUS, `${identity.product}-etcd.yaml`), server);
      await server.kubectl(["apply", "--server-side", "--filename=-"], manifest);
      for (const name of [`daemonset/${identity.nodeAgent}`, `deployment/${identity.controllers}`]) {
        await server.kubectl(["rollout", "status", name, "--namespace=kube-system", "--timeout=120s"]);
      }
    },
  },
];

describe.each(WAYS)("an upgrade of two nodes under traffic, on $title", ({ install, namespace, options }) => {
  let previous: OtherRelease;
  let cluster: InstalledCluster;
  let kept: readonly string[];
  beforeAll(async () => {
    if (problem !== undefined) return;
    previous = buildRelease(PREVIOUS);
    const image = await imageOfRelease(previous);
    const controlPlane = await openBareControlPlane();
    const more = { images: [image.archive] };
    const nodes = [await controlPlane.addNode("node-1", more), await controlPlane.addNode("node-2", more)];
    cluster = installedCluster({ ...controlPlane, nodes });
  });
  afterAll(async () => {
    await cluster?.[Symbol.asyncDispose]();
    previous?.[Symbol.dispose]();
  });

  const upgrade = (...args: readonly string[]) => {
    const file = join(cluster.host.directory, "plan.json");
    const environment = { KUBECONFIG: cluster.server.adminKubeconfig };
    return cluster.host.must([ADMIN_TOOL, "upgrade", ...args, "--plan", file], {
      environment,
      limitMilliseconds: 400_000,
    });
  };
  const agentImages = async () => {
    const selector = `--selector=app.kubernetes.io/name=${identity.nodeAgent}`;
    const jsonpath = "--output=jsonpath={.items[*].spec.containers[0].image}";
    const images = await cluster.server.kubectl(["get", "pods", `--namespace=${namespace}`, selector, jsonpath]);
    return images
      .trim()
      .split(" ")
      .map((image) => image.split(":").at(-1));
  };

  testCluster("the previous build runs, with a policy", async () => {
    const { server, pods, nodes } = cluster;
    await install(server);
    await Promise.all(nodes.map((node) => node.untilReady()));
    await server.createNamespace(NAMESPACE);
    const plans = Object.entries(PODS).map(([name, nodeName]) => ({ name, labels: { app: name }, spec: { nodeName } }));
    await pods.create(...plans);
    await Promise.all(plans.map(({ name }) => pods.ready(name)));
    await untilReachEachOther(pods, "a", "b");
    await server.apply(policyManifest("b", [{ from: [{ podSelector: { matchLabels: { app: "a" } } }] }]));
    for (const from of ["c", "d"]) await untilConnects(pods, { from, to: await addressesIn(pods, "b") }, "closed");
    await untilConnects(pods, { from: "a", to: await addressesIn(pods, "b") }, "open");
    kept = await createKept("node-1");
    expect(kept).toHaveLength(2);
    await pods.remove("kept");
    expect(await agentImages()).toEqual([`v${PREVIOUS}`, `v${PREVIOUS}`]);
  });

  /** Its addresses. */
  const createKept = async (nodeName: string) => {
    const { pods } = cluster;
    await pods.create({
      ...{ name: "kept", labels: { app: "kept" }, spec: { nodeName } },
      annotations: { [annotationKey("keepAddresses")]: "true" },
    });
    await pods.ready("kept");
    return addressesIn(pods, "kept");
  };

  /** Fails if a packet between pods that policy allows is lost meanwhile, or if one that it denies gets through. */
  const underTraffic = async (what: string, work: () => Promise<void>) => {
    const { pods } = cluster;
    const before = await Promise.all(Object.keys(PODS).map((name) => pods.get(name)));
    const pings = async (from: string, to: string) =>
      Promise.all((await addressesIn(pods, to)).map((address) => startLongPings(pods, from, address)));
    const allowed: readonly LongPings[] = [...(await pings("a", "b")), ...(await pings("b", "a"))];
    const denied: readonly LongPings[] = [...(await pings("c", "b")), ...(await pings("d", "b"))];

    const started = performance.now();
    await work();
    const seconds = (performance.now() - started) / 1_000;
    await allowed[0]?.more(MORE_PINGS);
    const [through, blocked] = await Promise.all([
      Promise.all(allowed.map((each) => each.stop())),
      Promise.all(denied.map((each) => each.stop())),
    ]);

    const sum = (numbers: readonly number[]) => numbers.reduce((all, one) => all + one, 0);
    const lost = sum(through.map((each) => each.lost.length));
    const passed = sum(blocked.map((each) => Math.max(each.sent - 1, 0) - each.lost.length));
    const [sent, tried] = [through, blocked].map((all) => sum(all.map((each) => each.sent)));
    console.log(
      `${what} in ${seconds.toFixed(0)} s; allowed: ${sent} sent, ${lost} lost; denied: ${tried} sent, ${passed} through`,
    );
    for (const each of through) expect(each.lost).toEqual([]);
    for (const each of blocked) expect(each.lost).toHaveLength(each.sent - 1);
    expect(Math.min(...through.map((each) => each.sent))).toBeGreaterThan(MORE_PINGS);
    // The same pods with the same addresses, none of them restarted.
    const after = await Promise.all(Object.keys(PODS).map((name) => pods.get(name)));
    const stateOf = ({ metadata, status }: Pod) => [
      metadata.uid,
      status.podIPs,
      status.containerStatuses?.[0]?.restartCount,
    ];
    expect(after.map(stateOf)).toEqual(before.map(stateOf));
  };

  testCluster("loses no packet, and lets no denied one through", async () => {
    await underTraffic("upgraded", async () => {
      await upgrade("plan", ...options);
      console.log(await upgrade("apply"));
    });
    expect(await agentImages()).toEqual([VERSION, VERSION]);
  });

  testCluster("new pods work, and the same again changes nothing", async () => {
    const { pods } = cluster;
    const used = (await Promise.all(Object.keys(PODS).map((name) => addressesIn(pods, name)))).flat();
    await pods.create({ name: "new", labels: { app: "new" }, spec: { nodeName: "node-2" } });
    await pods.ready("new");
    expect((await addressesIn(pods, "new")).filter((address) => used.includes(address))).toEqual([]);
    await untilReachEachOther(pods, "a", "new");
    expect(await createKept("node-2")).toEqual(kept);
    await untilReachEachOther(pods, "a", "kept");
    await untilConnects(pods, { from: "new", to: await addressesIn(pods, "b") }, "closed");
    expect(await upgrade("apply")).toContain("upgrade is complete");
  });

  testCluster("goes back to the previous build in the same way", async () => {
    const isPrevious = async () => (await agentImages()).every((tag) => tag === `v${PREVIOUS}`);
    await underTraffic("rolled back", async () => {
      console.log(await upgrade("rollback", "--yes"));
      await pollUntil(isPrevious, "the agents of the previous build", 120_000);
    });
  });
});

/** As an administrator edits it: dual stack, with the pools of this cluster and its etcd. */
function edited(text: string, { etcdEndpoint }: ApiServer): string {
  const pools = POD_RANGES.map((cidr) => ({ cidr, vxlanMode: "CrossSubnet", natOutgoing: true }));
  return text
    .replace(/(default_pools: )\|\n( {4}.*\n)+/, (_, key: string) => `${key}'${JSON.stringify(pools)}'\n`)
    .replace('"assign_ipv6": "false"', '"assign_ipv6": "true"')
    .replace("http://<ETCD_IP>:<ETCD_PORT>", etcdEndpoint);
}
