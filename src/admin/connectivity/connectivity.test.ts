import { describe, expect, test } from "bun:test";
import { type AdminRun, runInside } from "../../../test/support/admin-context.ts";
import { type FakePlan, failed, fakeCluster, type Stored } from "../../../test/support/fake-cluster.ts";
import { apiVersionOf, identity, OPERATOR_API } from "../../identity.ts";
import type { KubeRequest, KubeResponse } from "../../kube/api.ts";
import { VERSION } from "../../version.ts";
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE } from "../main/command.ts";
import { Interruption, STOP_EXIT_CODES } from "../main/interruption.ts";
import type { Probe, ProbeResult } from "./probe.ts";
import { probeKey } from "./probe.ts";

/** What a connection meets: the pod that tries it, what it tries, and the policies that exist. */
interface Attempt {
  readonly pod: string;
  readonly probe: Probe;
  readonly policies: readonly string[];
}

const ADDRESSES: Readonly<Record<string, readonly string[]>> = {
  "server-1": ["10.0.1.1", "fd00::11"],
  "server-2": ["10.0.2.1", "fd00::21"],
  "client-1": ["10.0.1.2", "fd00::12"],
  "client-2": ["10.0.2.2", "fd00::22"],
  "host-1": ["192.0.2.1"],
  "host-2": ["192.0.2.2"],
  "host-port-1": ["10.0.1.3", "fd00::13"],
};

/** As a network that does what policies say. */
function workingNetwork({ pod, probe, policies }: Attempt): ProbeResult {
  const isClosed =
    probe.kind === "echo" &&
    pod.startsWith("client") &&
    /^(10\.0|fd00::[12]1$)/.test(probe.host) &&
    (policies.includes("deny-egress") ||
      (policies.includes("allow-ingress") ? probe.port !== 8080 : policies.includes("deny-ingress")));
  if (isClosed) return { kind: "timeout", message: `no connection to ${probe.host} within 2 s` };
  const family = probe.host.includes(":") ? 1 : 0;
  return { kind: "ok", seenAs: ADDRESSES[pod]?.[family] ?? "" };
}

interface Plan extends Pick<FakePlan, "respond"> {
  readonly nodes?: readonly string[];
  readonly network?: (attempt: Attempt) => ProbeResult;
  /** The status of a pod that does not become ready. */
  readonly status?: (pod: string) => object | undefined;
  readonly objects?: Readonly<Record<string, object>>;
}

function clusterOf({
  nodes = ["node-1", "node-2"],
  network = workingNetwork,
  status,
  respond,
  objects = {},
}: Plan = {}) {
  let round = 0;
  const log = (pod: string): string => {
    round += 1;
    const at = cluster.objects;
    const key = [...at.keys()].find((each) => each.endsWith(`/pods/${pod}`)) ?? "";
    const command: readonly string[] = at.get(key).spec.containers[0].command;
    const probes: readonly Probe[] = JSON.parse(command.at(-1) ?? "[]");
    const policies = [...at.keys()].flatMap((each) => /\/networkpolicies\/(.+)$/.exec(each)?.[1] ?? []);
    const results = probes.map((probe) => [probeKey(probe), network({ pod, probe, policies })]);
    return `started\n${JSON.stringify({ round, results: Object.fromEntries(results) })}\n`;
  };
  const cluster = fakeCluster({
    objects: {
      ...Object.fromEntries(nodes.map((name, index) => [`/api/v1/nodes/${name}`, nodeObject(name, index + 1)])),
      "/api/v1/namespaces/default/services/kubernetes": { spec: { clusterIPs: ["10.96.0.1"] } },
      ...objects,
    },
    onCreate(path, object: Stored) {
      const { name } = object.metadata;
      if (path.includes("/services/")) object.spec.clusterIPs = [`10.96.0.${path.at(-1)}`];
      if (path.includes("/pods/")) object.status = status?.(name) ?? readyStatus(name);
    },
    respond(request: KubeRequest): KubeResponse | undefined {
      const logOf = /\/pods\/([^/]+)\/log$/.exec(request.path)?.[1];
      return respond?.(request) ?? (logOf === undefined ? undefined : { status: 200, text: log(logOf) });
    },
  });
  return cluster;
}

function nodeObject(name: string, number: number): object {
  const addresses = [{ type: "InternalIP", address: `192.0.2.${number}` }];
  return { metadata: { name }, status: { addresses, conditions: [{ type: "Ready", status: "True" }] } };
}

function readyStatus(name: string): object {
  const podIPs = (ADDRESSES[name] ?? []).map((ip) => ({ ip }));
  return { phase: "Running", podIPs, conditions: [{ type: "Ready", status: "True" }] };
}

interface Outcome extends AdminRun {
  readonly cluster: ReturnType<typeof clusterOf>;
  readonly checks: readonly {
    title: string;
    from: string;
    to: string;
    family?: string;
    result: string;
    reason?: string;
    remedy?: string;
  }[];
}

async function runTest(plan: Plan = {}, ...args: readonly string[]): Promise<Outcome> {
  const cluster = clusterOf(plan);
  const run = await runInside(["connectivity", "test", "-o", "json", ...args], {
    env: { KUBECONFIG: "/config" },
    openKubeClient: async () => cluster.client,
  });
  return { ...run, cluster, checks: run.stdout === "" ? [] : JSON.parse(run.stdout).checks };
}

function failures({ checks }: Outcome): readonly string[] {
  return checks
    .filter(({ result }) => result === "failed")
    .map(({ title, from, to, family = "", reason = "" }) => [title, from, to, family, reason].join(" | "));
}

const NAMESPACE = `${identity.product}-connectivity-test-00000000`;

describe("connectivity test", () => {
  test("tries every connection in both directions, in each family, and deletes its namespace", async () => {
    const done = await runTest();

    expect(failures(done)).toEqual([]);
    expect(done.code).toBe(EXIT_OK);
    const titles = Object.entries(Object.groupBy(done.checks, ({ title }) => title)).map(([title, all]) => [
      title,
      all?.length,
    ]);
    expect(Object.fromEntries(titles)).toEqual({
      "pod starts": 7,
      "pod to DNS": 1,
      "pod to pod": 8,
      "pod to Service": 4,
      "pod to host": 4,
      "pod to host port": 2,
      "pod to API server": 2,
      "host to pod": 4,
      "policy denies ingress": 8,
      "policy allows a port": 8,
      "policy denies other ports": 8,
      "policy denies egress": 8,
    });
    expect([...done.cluster.objects.keys()].filter((path) => path.includes(NAMESPACE))).toEqual([]);
  });

  test("prints a table, the reason of each failure and what to do", async () => {
    const cluster = clusterOf({
      network: (attempt) =>
        attempt.pod === "client-1" && attempt.probe.host === "fd00::21"
          ? { kind: "timeout", message: "no connection to [fd00::21]:8080 within 2 s" }
          : workingNetwork(attempt),
    });
    const { code, stdout } = await runInside(["connectivity", "test"], {
      env: { KUBECONFIG: "/config" },
      openKubeClient: async () => cluster.client,
    });

    expect(code).toBe(EXIT_FAILED);
    expect(stdout).toMatch(/^pod to pod +node-1 +node-2 +FAILED \(IPv6\), ok \(IPv4\)$/m);
    expect(stdout).toContain(
      "Failed: pod to pod, node-1 to node-2\n  IPv6: no connection to [fd00::21]:8080 within 2 s\n  What to do: ",
    );
    expect(stdout).toMatch(/64 checks: 58 ok, 1 failed, 5 skipped\n$/);
  });

  test("fails if a policy is not enforced, and if it closes what it allows", async () => {
    const ignored = await runTest({ network: (attempt) => workingNetwork({ ...attempt, policies: [] }) });
    expect(new Set(failures(ignored).map((line) => line.replace(/ \| node.* \| /, ": ")))).toEqual(
      new Set(
        ["policy denies ingress", "policy denies other ports", "policy denies egress"].map(
          (title) => `${title}: the connection is allowed, although a NetworkPolicy denies it`,
        ),
      ),
    );

    const network = (attempt: Attempt) =>
      workingNetwork({ ...attempt, policies: attempt.policies.filter((name) => name !== "allow-ingress") });
    const closed = await runTest({ network });
    expect(failures(closed)[0]).toBe(
      "policy allows a port | node-1 | node-1 | IPv4 | no connection to 10.0.1.1 within 2 s",
    );
  });

  test("names a cut between nodes, and does not blame policies or Services for it", async () => {
    const isCut = ({ pod, probe }: Attempt) =>
      (pod.endsWith("1") && /^(10\.0\.2|fd00::2|10\.96\.0\.2)/.test(probe.host)) ||
      (pod.endsWith("2") && /^(10\.0\.1|fd00::1|10\.96\.0\.1$)/.test(probe.host) && probe.kind === "echo");
    const done = await runTest({
      network: (attempt) => (isCut(attempt) ? { kind: "timeout", message: "no connection" } : workingNetwork(attempt)),
    });

    expect(failures(done).map((line) => line.split(" | ").slice(0, 4).join(" | "))).toEqual([
      "pod to pod | node-1 | node-2 | IPv4",
      "pod to pod | node-1 | node-2 | IPv6",
      "pod to Service | node-1 | node-2 | IPv4",
      "host to pod | node-1 | node-2 | IPv4",
      "pod to pod | node-2 | node-1 | IPv4",
      "pod to pod | node-2 | node-1 | IPv6",
      "pod to Service | node-2 | node-1 | IPv4",
      "host to pod | node-2 | node-1 | IPv4",
    ]);
    const remedies = done.checks.flatMap(({ title, remedy = "" }) => (remedy === "" ? [] : [`${title}: ${remedy}`]));
    expect(remedies[0]).toContain("UDP port 4789");
    expect(remedies[2]).toBe('pod to Service: first fix "pod to pod", node-1 to node-2');
    const policies = done.checks.filter(({ title, from, to }) => title.startsWith("policy") && from !== to);
    expect(new Set(policies.map(({ result }) => result))).toEqual(new Set(["skipped"]));
  });

  test("fails if the address of a pod is translated on the way, or if large packets are lost", async () => {
    const translated = await runTest({
      network: (attempt) => {
        const result = workingNetwork(attempt);
        return result.kind === "ok" ? { ...result, seenAs: "192.0.2.1" } : result;
      },
    });
    expect(failures(translated)[0]).toBe(
      "pod to pod | node-1 | node-1 | IPv4 | the server sees the address 192.0.2.1 instead of that of the pod (10.0.1.2, fd00::12)",
    );

    const lossy = await runTest({ network: () => ({ kind: "incomplete", message: "no complete response" }) });
    expect(lossy.checks.find(({ result }) => result === "failed")?.remedy).toContain("MTU");
  });

  test.each([
    [{ largest: 0, mtu: 1450 }, "set another vxlanPort"],
    [{ largest: 1390, mtu: 1450 }, 'set "mtu": 1390 in the network config'],
    [{ largest: 1450, mtu: 1450 }, "set vxlanChecksumOffload to Off"],
  ])("names the cause if TCP between nodes is lost, and of datagrams %p passes", async (datagrams, cause) => {
    const causes = ["set another vxlanPort", "in the network config", "set vxlanChecksumOffload to Off"];
    const done = await runTest({
      network: () => ({ kind: "timeout", message: "no connection", datagrams }),
    });
    const of = (to: string) => done.checks.find((each) => each.title === "pod to pod" && each.to === to)?.remedy ?? "";

    expect(of("node-2")).toContain(cause);
    expect(causes.filter((each) => of("node-2").includes(each))).toHaveLength(1);
    expect(causes.filter((each) => of("node-1").includes(each))).toEqual([]);
  });

  test("reports a pod that does not start with the reason of its node, and goes on without it", async () => {
    const waiting = { phase: "Pending", conditions: [{ type: "PodScheduled", status: "True" }] };
    const warning = (reason: string, message: string, name = "server-2") => ({
      reason,
      message,
      involvedObject: { name },
    });
    const events = [
      warning("FailedCreatePodSandBox", "plugin failed (add): no address is free"),
      warning("MissingClusterDNS", "falling back"),
    ];
    const done = await runTest(
      {
        status: (pod) => (pod === "server-2" ? waiting : undefined),
        respond: ({ path }) =>
          path.endsWith("/events") ? { status: 200, text: JSON.stringify({ items: events }) } : undefined,
      },
      "--timeout=1s",
    );

    expect(failures(done)).toEqual([
      "pod starts | node-2 | server-2 |  | FailedCreatePodSandBox: plugin failed (add): no address is free",
    ]);
    expect(done.checks.filter(({ title, to }) => title === "pod to pod" && to === "node-2")).toEqual([]);
    expect(done.checks.filter(({ title }) => title === "pod to pod")).toHaveLength(4);
  });

  test("does not wait for an image that cannot be pulled, and tries nothing without a server", async () => {
    const state = { waiting: { reason: "ImagePullBackOff", message: 'Back-off pulling image "x"' } };
    const done = await runTest({ status: () => ({ phase: "Pending", containerStatuses: [{ state }] }) });

    expect(failures(done)).toHaveLength(3);
    expect(failures(done)[0]).toContain('ImagePullBackOff: Back-off pulling image "x"');
    expect(done.cluster.requests.some((request) => request.endsWith("/log"))).toBe(false);
    expect(done.cluster.requests.at(-2)).toBe(`DELETE /api/v1/namespaces/${NAMESPACE}`);
  });

  test("tests one node if there is only one, and says what it could not try", async () => {
    const done = await runTest({ nodes: ["only"] });

    expect(done.code).toBe(EXIT_OK);
    expect(
      done.checks.filter(({ result }) => result === "skipped").map(({ title, reason }) => `${title}: ${reason}`),
    ).toEqual([
      "pod to pod: only one node is Ready and schedulable",
      'pod to DNS: there is no Service with the label "k8s-app=kube-dns"',
    ]);
  });

  test("does not try host ports that the Installation disables, and says so", async () => {
    const spec = { [`${identity.product}Network`]: { hostPorts: "Disabled" } };
    const done = await runTest({
      objects: { [`/apis/${apiVersionOf(OPERATOR_API)}/installations/default`]: { spec } },
    });

    expect(done.code).toBe(EXIT_OK);
    expect(done.checks.filter(({ title }) => title === "pod to host port")).toMatchObject([
      { result: "skipped", reason: "host ports are disabled in the Installation" },
    ]);
  });

  test("uses the image of the installed network with copies of its pull secrets, unless another is given", async () => {
    const template = {
      spec: {
        imagePullSecrets: [{ name: "key" }],
        containers: [{ name: identity.nodeAgent, image: "mine.example/x:1" }],
      },
    };
    const namespace = identity.systemNamespace;
    const objects = {
      [`/apis/apps/v1/namespaces/${namespace}/daemonsets/${identity.nodeAgent}`]: {
        metadata: { namespace },
        spec: { template },
      },
      [`/api/v1/namespaces/${namespace}/secrets/key`]: { type: "kubernetes.io/dockerconfigjson", data: { a: "b" } },
    };
    const images: string[] = [];
    const seen = ({ method, path, body = "" }: KubeRequest) => {
      if (method === "POST" && path.endsWith("/pods")) images.push(JSON.parse(body).spec.containers[0].image);
      return undefined;
    };
    const done = await runTest({ objects, respond: seen });
    await runTest({ objects, respond: seen }, "--image=other:2");
    await runTest({ respond: seen });

    expect(done.cluster.requests).toContain(`POST /api/v1/namespaces/${NAMESPACE}/secrets`);
    expect([...new Set(images)]).toEqual([
      "mine.example/x:1",
      "other:2",
      `${identity.imageRegistry}${identity.product}:${VERSION}`,
    ]);
  });

  test("leaves out what is to be skipped", async () => {
    const skips = ["service", "host", "host-port", "api-server", "dns", "policy"].map((word) => `--skip=${word}`);
    const done = await runTest({}, ...skips);

    expect(new Set(done.checks.map(({ title }) => title))).toEqual(new Set(["pod starts", "pod to pod"]));
    expect(done.checks.filter(({ title }) => title === "pod starts")).toHaveLength(4);
  });

  test("deletes its namespace if it is interrupted", async () => {
    const user = new AbortController();
    const cluster = clusterOf({
      respond: ({ path }) => {
        if (path.endsWith("/log")) user.abort(new Interruption("SIGINT"));
        return undefined;
      },
    });
    const { code } = await runInside(["connectivity", "test"], {
      env: { KUBECONFIG: "/config" },
      openKubeClient: async () => cluster.client,
      signal: user.signal,
    });

    expect(code).toBe(STOP_EXIT_CODES.SIGINT);
    expect(cluster.requests.at(-1)).toBe(`DELETE /api/v1/namespaces/${NAMESPACE}`);
  });

  test("says how to delete the namespace if that failed", async () => {
    const respond = ({ method }: KubeRequest) => (method === "DELETE" ? failed(500, "storage is down") : undefined);
    const { stderr } = await runTest({ respond });

    expect(stderr).toContain(`Run: kubectl delete namespace ${NAMESPACE}\n`);
  });

  test.each([
    [["--timeout=soon"], "is not a duration"],
    [["--host-port=70000"], "is not a port"],
    [["--skip=everything"], "--skip"],
  ])("refuses %p", async (args, message) => {
    const { code, stderr } = await runTest({}, ...args);

    expect(code).toBe(EXIT_USAGE);
    expect(stderr).toContain(message);
  });

  test("refuses an unknown node and a cluster without a usable one", async () => {
    expect((await runTest({}, "--node=node-9")).stderr).toContain('there is no node "node-9" (use node-1, node-2)');
    expect((await runTest({ nodes: [] })).stderr).toContain("no node is Ready and schedulable");
  });
});
