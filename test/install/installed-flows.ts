/**
 * Flows of an installed cluster, through everything that is real in one: kube-proxy translates on the node of the client, policies of
 * Kubernetes decide on both, the collectors record, and the controllers answer behind the API server.
 */
import { expect } from "bun:test";
import type { FlowAnswer } from "../../src/flows/flow-answer.ts";
import type { FlowEnd, FlowRecord } from "../../src/flows/flow-record.ts";
import { FLOWS_API, identity, PRODUCT_API } from "../../src/identity.ts";
import { FLOW_READER } from "../../src/release/workloads/names.ts";
import { POD_PORT, podManifest } from "../support/kube-pods.ts";
import { untilInstalled } from "../support/operator-install.ts";
import { NAMESPACE } from "../support/pods-in-namespace.ts";
import { pollUntil } from "../support/poll.ts";
import type { InstalledCluster } from "./installed-tests.ts";

type TestCluster = (title: string, run: () => Promise<void>) => void;

const DATA = "data";
const ANYONE = "anna";

/** The database accepts the pods that may ask it, and these may connect to everything. */
const OBJECTS: readonly object[] = [
  {
    ...{ apiVersion: "v1", kind: "Service", metadata: { name: "database", namespace: DATA } },
    spec: { selector: { app: "database" }, ports: [{ port: 5432, targetPort: POD_PORT }] },
  },
  {
    ...{ apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", metadata: { name: "entry", namespace: DATA } },
    spec: {
      podSelector: { matchLabels: { app: "database" } },
      ingress: [{ from: [{ namespaceSelector: {}, podSelector: { matchLabels: { app: "caller" } } }] }],
    },
  },
  {
    ...{ apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", metadata: { name: "exit", namespace: NAMESPACE } },
    spec: { podSelector: { matchLabels: { app: "caller" } }, policyTypes: ["Egress"], egress: [{}] },
  },
];

/** Not in force: flows say what it would decide. */
const STAGED = {
  ...{ apiVersion: `${PRODUCT_API.group}/v3`, kind: "StagedNetworkPolicy" },
  metadata: { name: "closed", namespace: DATA },
  spec: {
    stagedAction: "Set",
    order: 1,
    selector: "app == 'database'",
    types: ["Ingress"],
    ingress: [{ action: "Deny" }],
  },
};

export function installedFlowsTests(testCluster: TestCluster, site: () => InstalledCluster): void {
  const flows = flowsAt(site);
  recordedTests(testCluster, site, flows);
  readerTests(testCluster, site, flows);
}

function recordedTests(testCluster: TestCluster, site: () => InstalledCluster, flows: Flows): void {
  const { kubectl, answer, flowsOf, connect } = flows;

  testCluster("records flows when they are switched on", async () => {
    const { server, pods } = site();
    await kubectl("patch", "installation/default", "--type=merge", '--patch={"spec":{"flows":{"mode":"Enabled"}}}');
    await server.createNamespace(DATA);
    const database = { name: "database", namespace: DATA, labels: { app: "database" }, spec: { nodeName: "node-2" } };
    await server.apply(
      [podManifest(database), ...[...OBJECTS, STAGED].map((each) => JSON.stringify(each))].join("\n---\n"),
    );
    await pods.create(
      ...["caller", "stranger"].map((name) => ({ name, labels: { app: name }, spec: { nodeName: "node-1" } })),
    );
    await kubectl("wait", "--for=condition=Ready", "pod/database", `--namespace=${DATA}`, "--timeout=60s");
    for (const name of ["caller", "stranger"]) await pods.ready(name);
    await untilInstalled(server);
    const isAnswered = async () =>
      (await answer("last=1").catch(() => [PROBLEM])).every((each) => !("problem" in each));
    await pollUntil(isAnswered, "both nodes to answer", 90_000);
  });

  testCluster(
    "names the Service, both pods and the rules of both nodes, joined by the tuple behind the Service",
    async () => {
      let found: Pair | undefined;
      const isFound = async () => {
        await connect("caller");
        found = pairIn(await flowsOf(`pod=${NAMESPACE}/caller&verdict=allowed`));
        return found?.arriving.staged !== undefined;
      };
      await pollUntil(isFound, "a connection with its rules on both nodes", 60_000);
      const caller = { kind: "pod", namespace: NAMESPACE, name: "caller", node: "node-1" } as const;
      const database = { kind: "pod", namespace: DATA, name: "database", node: "node-2", port: POD_PORT } as const;

      expect(found?.leaving).toMatchObject({
        source: caller,
        destination: { kind: "service", namespace: DATA, name: "database", port: 5432 },
        backend: database,
      });
      expect(found?.arriving).toMatchObject({ source: caller, destination: database, staged: { verdict: "denied" } });
    },
  );

  testCluster("names the rule that denied a connection", async () => {
    let denied: FlowRecord | undefined;
    const isFound = async () => {
      await connect("stranger");
      [denied] = await flowsOf(`from=${NAMESPACE}/stranger&to=${DATA}/database&verdict=denied&last=1`);
      return denied !== undefined;
    };
    await pollUntil(isFound, "the denied connection", 60_000);

    expect(denied).toMatchObject({ node: "node-2", state: "denied" });
    expect(denied?.decisions.at(-1)).toMatchObject({
      ...{ point: "workload ingress", verdict: "deny", rule: expect.stringContaining("default") },
    });
  });
}

function readerTests(testCluster: TestCluster, site: () => InstalledCluster, flows: Flows): void {
  const { kubectl, answer, flowsOf } = flows;

  testCluster("shows a reader of one namespace the other end without its name", async () => {
    const inNamespace = `--namespace=${NAMESPACE}`;
    await kubectl("create", "role", ANYONE, inNamespace, "--verb=list", "--resource=pods");
    await kubectl("create", "rolebinding", ANYONE, inNamespace, `--role=${ANYONE}`, `--user=${ANYONE}`);
    await kubectl("create", "clusterrolebinding", ANYONE, `--clusterrole=${FLOW_READER}`, `--user=${ANYONE}`);
    const as = [`--as=${ANYONE}`, "--as-group=system:authenticated"];
    const shown = await flowsOf(`pod=caller&verdict=allowed`, ...as);

    const hidden = shown.filter(({ destination }) => destination.kind === "hidden");
    expect(hidden.filter(({ backend }) => backend?.kind === "hidden").length).toBeGreaterThan(0);
    expect(hidden.filter(({ node }) => node === "hidden").length).toBeGreaterThan(0);
    for (const secret of [`"${DATA}"`, "database", "entry", "node-2"])
      expect(JSON.stringify(hidden)).not.toContain(secret);
    expect(await flowsOf(`to=${DATA}/database`, ...as)).toEqual([]);
  });

  testCluster("is answered again soon after the controllers are deleted", async () => {
    const names = async () =>
      (await kubectl("get", "pods", `--namespace=${identity.systemNamespace}`, "--output=name"))
        .split("\n")
        .filter((name) => name.startsWith(`pod/${identity.controllers}-`));
    const [first = "none"] = await names();
    await kubectl("delete", first, `--namespace=${identity.systemNamespace}`, "--wait=false");
    const isAnswered = async () => {
      const answers = await answer(`pod=${NAMESPACE}/caller&verdict=allowed`).catch(() => [PROBLEM]);
      const pair = pairIn(answers.flatMap((each) => ("flow" in each ? [each.flow] : [])));
      return answers.every((each) => !("problem" in each)) && pair !== undefined;
    };
    await pollUntil(isAnswered, "the flows of both nodes", 60_000);
    await untilInstalled(site().server);
    await pollUntil(async () => !(await names()).includes(first), "the deleted pod to be gone", 60_000);
    await kubectl("delete", "namespace", DATA, "--timeout=60s");
    await kubectl("delete", "networkpolicy", "exit", `--namespace=${NAMESPACE}`);
  });
}

interface Flows {
  readonly kubectl: (...args: readonly string[]) => Promise<string>;
  readonly answer: (parameters: string, ...as: readonly string[]) => Promise<readonly FlowAnswer[]>;
  readonly flowsOf: (parameters: string, ...as: readonly string[]) => Promise<readonly FlowRecord[]>;
  /** Whether it may is what the flows say. */
  readonly connect: (from: string) => Promise<void>;
}

function flowsAt(site: () => InstalledCluster): Flows {
  const kubectl = (...args: readonly string[]) => site().server.kubectl(args);
  const answer = async (parameters: string, ...as: readonly string[]): Promise<readonly FlowAnswer[]> => {
    const text = await kubectl(
      "get",
      "--raw",
      `/apis/${FLOWS_API.group}/${FLOWS_API.version}/flows?${parameters}`,
      ...as,
    );
    return text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)]));
  };
  const flowsOf = async (parameters: string, ...as: readonly string[]) =>
    (await answer(parameters, ...as)).flatMap((each) => ("flow" in each ? [each.flow] : []));
  const connect = async (from: string) => {
    const { spec } = await site().server.get<Service>("service", "database", `--namespace=${DATA}`);
    await site()
      .pods.exec(from, "/agnhost", "connect", `${spec.clusterIP}:5432`, "--timeout=1s")
      .catch(() => {});
  };
  return { kubectl, answer, flowsOf, connect };
}

interface Service {
  readonly spec: { readonly clusterIP: string };
}

const PROBLEM: FlowAnswer = { problem: { message: "there is no answer" } };

interface Pair {
  readonly leaving: FlowRecord;
  readonly arriving: FlowRecord;
}

/** One connection as both nodes have seen it, each with the rule of its policy. */
function pairIn(flows: readonly FlowRecord[]): Pair | undefined {
  const decided = (flow: FlowRecord, point: string, policy: string) =>
    flow.decisions.some((each) => each.point === point && each.verdict === "allow" && each.rule?.includes(policy));
  for (const leaving of flows) {
    if (leaving.node !== "node-1" || !decided(leaving, "workload egress", "exit")) continue;
    const arriving = flows.find(
      (flow) =>
        flow.node === "node-2" &&
        decided(flow, "workload ingress", "entry") &&
        isSame(flow.source, leaving.source) &&
        isSame(flow.destination, leaving.backend),
    );
    if (arriving !== undefined) return { leaving, arriving };
  }
  return undefined;
}

function isSame(left: FlowEnd, right: FlowEnd | undefined): boolean {
  return left.address === right?.address && left.port === right.port;
}
