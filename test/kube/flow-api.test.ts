/**
 * The API of flows of a cluster: a real API server, the controllers as a process with their own roles, and links of nodes with real
 * tokens. What the nodes answer is of this test.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ControllerLinks } from "../../src/agent/flows/link/node-link.ts";
import type { FlowAnswer, FlowQuestion, FlowSource } from "../../src/flows/flow-answer.ts";
import type { FlowEnd, FlowRecord } from "../../src/flows/flow-record.ts";
import { visibleMatcher } from "../../src/flows/visible-flows.ts";
import { FLOWS_API, identity } from "../../src/identity.ts";
import { roleName } from "../../src/release/roles/role-files.ts";
import { flowApiObjects } from "../../src/release/workloads/flow-api.ts";
import {
  FLOW_READER,
  FLOWS,
  FLOWS_API_SERVICE,
  FLOWS_AUDIENCE,
  flowServerName,
  TLS_KEYS,
} from "../../src/release/workloads/names.ts";
import type { Certificate } from "../support/certificates.ts";
import { makeRoot, makeSigned } from "../support/certificates.ts";
import { type Controllers, startControllers } from "../support/controllers.ts";
import { freePorts } from "../support/etcd.ts";
import { type ApiServer, apiServerProblem, kubeProgram, startApiServer } from "../support/kube-apiserver.ts";
import { installCrds } from "../support/kube-crds.ts";
import { testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { builtProgram } from "../support/run-plugin.ts";

const problem = apiServerProblem();
const testServer = testNeeding(problem);
const NAMESPACE = "kube-system";
const ROLE = "controllers-kubernetes";
const PATH = `/apis/${FLOWS_API.group}/${FLOWS_API.version}`;
const LOSSES = {
  ...{ kernelOverruns: 1, rulesUnknown: 0, overLimit: 0, overCapacity: 0, deniedSuppressed: 0, namesUnknown: 0 },
  ...{ notStored: 0, notLogged: 0, withoutCollector: 0 },
};

let server: ApiServer;
let controllers: Controllers;
let environment: Readonly<Record<string, string>>;
let apiPort = 0;
let linkPort = 0;
const links: ControllerLinks[] = [];
const logged: string[] = [];

function podOf(namespace: string, name: string, node: string): FlowEnd {
  return { kind: "pod", address: `addr-${name}`, port: 80, namespace, name, node, labels: { app: name } };
}

function flowOf(id: string, start: number, source: FlowEnd, destination: FlowEnd): FlowRecord {
  return {
    ...{ id, node: "whatever the node says", family: 4, protocol: 6, source, destination, direction: "both" },
    ...{ verdict: "denied", state: "denied", start, end: start },
    decisions: [
      { point: "workload egress", verdict: "allow", rule: `policy ${source.namespace}/out egress 0` },
      { point: "workload ingress", verdict: "deny", rule: `policy ${destination.namespace}/in ingress 0` },
    ],
    ...{ sent: { packets: 1, bytes: 60 }, received: { packets: 0, bytes: 0 } },
  };
}

const FLOWS_OF: Readonly<Record<string, readonly FlowRecord[]>> = {
  n1: [
    flowOf("1", 1_000, podOf("red", "client", "n1"), podOf("blue", "server", "n2")),
    flowOf("3", 3_000, podOf("blue", "other", "n1"), podOf("blue", "server", "n2")),
  ],
  n2: [flowOf("2", 2_000, podOf("red", "client", "n1"), podOf("blue", "server", "n2"))],
};

/** Also says who was asked what. */
class TestSource implements FlowSource {
  readonly asked: FlowQuestion[] = [];
  news = Promise.withResolvers<FlowRecord>();

  constructor(private readonly node: string) {}

  async *answer(question: FlowQuestion, signal: AbortSignal): AsyncIterable<FlowAnswer> {
    this.asked.push(question);
    if (question.kind === "explanation") {
      const flow = (FLOWS_OF[this.node] ?? []).find(({ id }) => id === question.id);
      if (flow !== undefined) yield { explanation: { flow, missing: ["everything"] } };
      return;
    }
    const matches = visibleMatcher(question);
    for (const flow of FLOWS_OF[this.node] ?? []) if (matches(flow)) yield { flow };
    yield { losses: { node: "another node", ...LOSSES } };
    if (question.kind !== "flows" || !question.follow) return;
    const { promise: stopped, resolve } = Promise.withResolvers<undefined>();
    signal.addEventListener("abort", () => resolve(undefined));
    const flow = await Promise.race([this.news.promise, stopped]);
    if (flow !== undefined) yield { flow };
    await stopped;
  }
}

const SOURCES = { n1: new TestSource("n1"), n2: new TestSource("n2") };

beforeAll(async () => {
  if (problem !== undefined) return;
  server = await startApiServer();
  await installCrds(server);
  await server.apply(
    await Bun.file(join(import.meta.dir, `../../deploy/rbac/${roleName(ROLE, identity)}.yaml`)).text(),
  );
  const account = { apiVersion: "v1", kind: "ServiceAccount" };
  for (const name of [identity.nodeAgent, "stranger"])
    await server.apply(JSON.stringify({ ...account, metadata: { name, namespace: NAMESPACE } }));
  for (const name of ["n1", "n2"])
    await server.apply(JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name } }));
  for (const name of ["red", "blue"]) await server.createNamespace(name);
  [apiPort = 0, linkPort = 0] = await freePorts(2);
  for (const object of flowApiObjects(NAMESPACE, { limitsNodes: true }))
    await server.apply(JSON.stringify(reachable(object)));
  const token = await server.kubectl(["create", "token", identity.controllers, `--namespace=${NAMESPACE}`]);
  const [healthPort = 0] = await freePorts(1);
  environment = {
    ...{ KUBECONFIG: server.credentials.writeKubeconfig("controllers", { token: token.trim() }) },
    ...{ DATASTORE_TYPE: "kubernetes", HEALTH_PORT: `${healthPort}`, FLOWS: "Enabled" },
    ...{ FLOWS_API_PORT: `${apiPort}`, FLOWS_LINK_PORT: `${linkPort}` },
  };
  controllers = startControllers(environment);
  await controllers.untilLogged("Serving the API of flows");
  for (const [node, source] of Object.entries(SOURCES)) await openLink(source, await tokenOf(node));
  await untilAvailable();
}, 120_000);
afterAll(async () => {
  for (const each of links) each.close();
  await controllers?.kill();
  await server?.stop();
});

/** The API server is on this machine, and the controllers in no pod: the Service names an address in place of pods. */
function reachable(object: object): object {
  const { kind, spec } = object as { readonly kind: string; readonly spec?: object };
  if (kind === "Service") return { ...object, spec: { type: "ExternalName", externalName: "127.0.0.1" } };
  if (kind !== "APIService") return object;
  return { ...object, spec: { ...spec, service: { name: FLOWS, namespace: NAMESPACE, port: apiPort } } };
}

async function tokenOf(node: string, audience = FLOWS_AUDIENCE, name: string = identity.nodeAgent): Promise<string> {
  const bound = ["--bound-object-kind=Node", `--bound-object-name=${node}`];
  const token = ["create", "token", name, `--namespace=${NAMESPACE}`, `--audience=${audience}`, ...bound];
  return (await server.kubectl(token)).trim();
}

async function authority(): Promise<string> {
  const map = await server.get<{ readonly data: Readonly<Record<string, string>> }>(
    ...["configmap", FLOWS, `--namespace=${NAMESPACE}`],
  );
  return map.data[TLS_KEYS.authorities] ?? "";
}

async function openLink(source: FlowSource, token: string): Promise<ControllerLinks> {
  const opened = new ControllerLinks({ source, log: (message) => logged.push(message), random: Math.random });
  opened.use({
    ...{ addresses: [`127.0.0.1:${linkPort}`], serverName: flowServerName(NAMESPACE) },
    ...{ authority: await authority(), token },
  });
  links.push(opened);
  return opened;
}

async function untilAvailable(): Promise<void> {
  await pollUntil(async () => {
    const { status } = await server.get<{
      readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
    }>("apiservice", FLOWS_API_SERVICE);
    return status?.conditions?.some(({ type, status: is }) => type === "Available" && is === "True") ?? false;
  }, "the APIService to be available");
}

function kubectlAs(user: string, path: string): Promise<string> {
  return server.kubectl(["get", "--raw", path, `--as=${user}`, "--as-group=system:authenticated"]);
}

function linesOf(text: string): readonly FlowAnswer[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

function flowsIn(answers: readonly FlowAnswer[]): readonly FlowRecord[] {
  return answers.flatMap((answer) => ("flow" in answer ? [answer.flow] : []));
}

async function grant(user: string, namespace: string): Promise<void> {
  const name = `pods-of-${user}`;
  await server.kubectl(["create", "role", name, `--namespace=${namespace}`, "--verb=list", "--resource=pods"]);
  await server.kubectl(["create", "rolebinding", name, `--namespace=${namespace}`, `--role=${name}`, `--user=${user}`]);
}

describe("the API of flows", () => {
  testServer(
    "shows everything to the administrator: of all nodes, the oldest first, each by the node of its token",
    async () => {
      const answers = linesOf(await server.kubectl(["get", "--raw", `${PATH}/flows`]));

      expect(flowsIn(answers).map(({ id, node }) => [id, node])).toEqual([
        ["1", "n1"],
        ["2", "n2"],
        ["3", "n1"],
      ]);
      const losses = answers.flatMap((answer) => ("losses" in answer ? [answer.losses.node] : []));
      expect(losses.toSorted()).toEqual(["n1", "n2"]);
      const last = linesOf(await server.kubectl(["get", "--raw", `${PATH}/flows?last=1&pod=client`]));
      expect(flowsIn(last).map(({ id }) => id)).toEqual(["2"]);
      expect(SOURCES.n1.asked.at(-1)).toMatchObject({ query: { last: 1, pod: "client" } });
    },
  );

  testServer("shows a user with one namespace nothing of another one, and filters only what it shows", async () => {
    await grant("anna", "red");
    await server.kubectl(["create", "clusterrolebinding", "anna", `--clusterrole=${FLOW_READER}`, "--user=anna"]);
    const text = await kubectlAs("anna", `${PATH}/flows`);

    expect(text).not.toContain("blue");
    expect(text).not.toContain('"server"');
    expect(text).toContain("addr-server");
    expect(text).not.toContain("n2");
    expect(flowsIn(linesOf(text)).map(({ id, node }) => [id, node])).toEqual([
      ["1", "n1"],
      ["2", "hidden"],
    ]);
    const filtered = async (parameters: string) =>
      flowsIn(linesOf(await kubectlAs("anna", `${PATH}/flows?${parameters}`))).map(({ start }) => start / 1_000);
    expect(await filtered("pod=client")).toEqual([1, 2]);
    expect(await filtered("pod=server")).toEqual([]);
    expect(await filtered("policy=blue/in")).toEqual([]);
    expect(await filtered("node=n2")).toEqual([]);
    expect(await filtered("last=1")).toEqual([2]);
    // Nodes are told what she may see.
    expect(SOURCES.n2.asked.at(-1)).toEqual({
      ...{ kind: "flows", query: { last: 1 }, follow: false },
      sight: { everyPod: false, nodes: false, podsOf: new Set(["red"]) },
    });
    const parameter = await kubectlAs("anna", `${PATH}/flows?sight=pods`).catch(String);
    expect(parameter).toContain("no such field");
    expect(await kubectlAs("anna", `${PATH}/rollups?node=n1`).catch(String)).toContain("may not list nodes");
    expect(await kubectlAs("anna", `${PATH}/explanation?id=3`).catch(String)).toContain("NotFound");
    expect(linesOf(await kubectlAs("anna", `${PATH}/explanation?id=1`))).toMatchObject([
      { explanation: { flow: { destination: { kind: "hidden" } }, missing: [] } },
    ]);
  });

  testServer("answers in one namespace whoever has the role there", async () => {
    await grant("carla", "red");
    const bind = ["create", "rolebinding", "carla", "--namespace=red", `--clusterrole=${FLOW_READER}`, "--user=carla"];
    await server.kubectl(bind);

    expect(
      flowsIn(linesOf(await kubectlAs("carla", `${PATH}/namespaces/red/flows`))).map(({ start }) => start),
    ).toEqual([1_000, 2_000]);
    for (const path of [`${PATH}/flows`, `${PATH}/namespaces/blue/flows`])
      expect(await kubectlAs("carla", path).catch(String)).toContain("Forbidden");
  });

  testServer("refuses whoever has no right to read flows, and unknown parameters", async () => {
    expect(await kubectlAs("nobody", `${PATH}/flows`).catch(String)).toContain("Forbidden");
    const refused = await server.kubectl(["get", "--raw", `${PATH}/flows?colour=red`]).catch(String);
    expect(refused).toContain("colour");
    expect(await server.kubectl(["api-resources", `--api-group=${FLOWS_API.group}`])).toContain("FlowRollup");
  });

  testServer("believes no header without the certificate of an API server", async () => {
    const { credentials, directory } = server;
    const forgedRoot = makeRoot(directory, "forged-root");
    const certificates: Readonly<Record<string, Certificate | undefined>> = {
      none: undefined,
      forged: makeSigned(directory, "forged", forgedRoot, { subject: "/CN=front-proxy-client" }),
      "another name": makeSigned(directory, "another", credentials.frontProxyAuthority, { subject: "/CN=another" }),
      "of the cluster's administrator": credentials.admin,
      expired: makeSigned(directory, "expired", credentials.frontProxyAuthority, {
        ...{ subject: "/CN=front-proxy-client", days: -1 },
      }),
    };
    const ask = async (certificate: Certificate | undefined) => {
      const identification = certificate === undefined ? [] : ["--cert", certificate.cert, "--key", certificate.key];
      const child = Bun.spawn(
        [
          ...["curl", "--silent", "--insecure", "--max-time", "10", ...identification],
          ...["--header", "X-Remote-User: admin", "--header", "X-Remote-Group: system:masters"],
          ...["--write-out", " %{http_code}", `https://127.0.0.1:${apiPort}${PATH}/flows`],
        ],
        { stdout: "pipe" },
      );
      return (await new Response(child.stdout).text()).trim();
    };

    for (const certificate of Object.values(certificates)) {
      const answer = await ask(certificate);
      expect(answer).toMatch(/ 401$| 000$/);
      expect(answer).not.toContain('"flow"');
    }
    expect(await ask(credentials.frontProxy)).toContain('"flow"');
  });

  testServer("follows: what is new comes at once, with the parameter of the API server", async () => {
    const lines: FlowAnswer[] = [];
    const child = Bun.spawn(
      [
        ...["curl", "--silent", "--no-buffer", "--cacert", server.credentials.authority.cert],
        ...["--cert", server.credentials.admin.cert, "--key", server.credentials.admin.key],
        `${server.url}${PATH}/flows?watch=true&last=1`,
      ],
      { stdout: "pipe" },
    );
    const reading = (async () => {
      let rest = "";
      for await (const bytes of child.stdout) {
        const parts = (rest + new TextDecoder().decode(bytes)).split("\n");
        rest = parts.pop() ?? "";
        lines.push(...parts.map((line) => JSON.parse(line)));
      }
    })();
    await pollUntil(() => flowsIn(lines).length === 1, "the last flow of the past");
    SOURCES.n2.news.resolve(flowOf("4", 4_000, podOf("red", "client", "n1"), podOf("blue", "server", "n2")));
    await pollUntil(() => flowsIn(lines).some(({ id }) => id === "4"), "the new flow");
    child.kill();
    await reading;
    expect(flowsIn(lines).map(({ id }) => id)).toEqual(["3", "4"]);
  });
});

describe("vendorctl flows", () => {
  /** Not waited for by blocking: the links are of this process. */
  const tool = async (words: string, kubeconfig: string) => {
    const command = [builtProgram(identity.adminTool), "flows", ...words.split(" "), `--kubeconfig=${kubeconfig}`];
    const child = Bun.spawn(command, { env: { PATH: process.env["PATH"] ?? "" }, stdout: "pipe", stderr: "pipe" });
    const [stdout, stderr] = await Promise.all(
      [child.stdout, child.stderr].map((stream) => new Response(stream).text()),
    );
    return { code: await child.exited, stdout: stdout ?? "", stderr: stderr ?? "" };
  };

  testServer("shows the administrator the flows of all nodes, and what they have lost", async () => {
    const { code, stdout, stderr } = await tool("--verdict denied --last 2", server.adminKubeconfig);

    expect([code, stdout.match(/(red|blue)\/\S+ +blue\/server +80\/tcp +denied/g)?.length]).toEqual([0, 2]);
    expect(stderr).toContain("Note: node n1: the kernel dropped events (1 time)");
    const explained = await tool("explain 1", server.adminKubeconfig);
    expect([explained.code, explained.stdout]).toEqual([0, expect.stringContaining("To:         blue/server")]);
    const unknown = await tool("explain none", server.adminKubeconfig);
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.not.stringContaining("switch flows on")]);
  });

  testServer(
    "shows a user with the role in one namespace what is in it, and names the missing right otherwise",
    async () => {
      await server.kubectl(["create", "serviceaccount", "dora", "--namespace=red"]);
      const token = (await server.kubectl(["create", "token", "dora", "--namespace=red"])).trim();
      const kubeconfig = server.credentials.writeKubeconfig("dora", { token });
      const refused = await tool("--last 5", kubeconfig);
      expect([refused.code, refused.stdout]).toEqual([1, ""]);
      expect(refused.stderr).toMatch(/cannot list resource "flows" in API group/);

      const account = "--serviceaccount=red:dora";
      await server.kubectl(["create", "role", "dora", "--namespace=red", "--verb=list", "--resource=pods"]);
      await server.kubectl(["create", "rolebinding", "dora", "--namespace=red", "--role=dora", account]);
      const bind = ["create", "rolebinding", "dora-flows", "--namespace=red", `--clusterrole=${FLOW_READER}`, account];
      await server.kubectl(bind);
      const { code, stdout } = await tool("-n red", kubeconfig);

      expect(code).toBe(0);
      expect(stdout).toMatch(/red\/client +addr-server +80\/tcp +denied +hidden/);
      expect(stdout).not.toContain("blue");
      expect((await tool("-n blue", kubeconfig)).code).toBe(1);
    },
  );
});

describe("a link", () => {
  const refusals: Readonly<Record<string, () => Promise<string>>> = {
    "for another purpose": () => tokenOf("n1", "another"),
    "of another account": () => tokenOf("n1", FLOWS_AUDIENCE, "stranger"),
    "without a node": async () =>
      (
        await server.kubectl([
          ...["create", "token", identity.nodeAgent, `--namespace=${NAMESPACE}`, `--audience=${FLOWS_AUDIENCE}`],
        ])
      ).trim(),
    "that is none": async () => "not-a-token",
  };
  for (const [title, token] of Object.entries(refusals))
    testServer(`is refused with a token ${title}`, async () => {
      const given = await token();
      const response = await fetch(`https://127.0.0.1:${linkPort}/link`, {
        headers: { authorization: `Bearer ${given}` },
        tls: { ca: await authority(), serverName: flowServerName(NAMESPACE) },
      } as RequestInit);

      expect(response.status).toBe(401);
      expect(await response.text()).not.toContain(given);
    });

  testServer("cannot be of another node: an agent gets no token for it", async () => {
    // As the agent of n1 does, whose own token is bound to its Node.
    const own = await tokenOf("n1", "https://kubernetes.default.svc");
    const agent = server.credentials.writeKubeconfig("agent-of-n1", { token: own });
    const request = (node: string) => [
      ...[kubeProgram("kubectl"), `--kubeconfig=${agent}`, "create", "token", identity.nodeAgent],
      ...[`--namespace=${NAMESPACE}`, `--audience=${FLOWS_AUDIENCE}`],
      ...["--bound-object-kind=Node", `--bound-object-name=${node}`],
    ];
    const outputOf = (node: string) => {
      const { stdout, stderr } = Bun.spawnSync(request(node), {
        env: { PATH: process.env["PATH"] ?? "", HOME: "/nonexistent" },
      });
      return `${stdout}${stderr}`;
    };

    await pollUntil(() => outputOf("n2").includes("bound to its own Node only"), "the policy to count");
    expect(outputOf("n1").split(".")).toHaveLength(3);
  });

  testServer("of a node that ends is named as a problem, and opened again with what happened meanwhile", async () => {
    links[1]?.close();
    await pollUntil(async () => {
      const answers = linesOf(await server.kubectl(["get", "--raw", `${PATH}/flows`]));
      return answers.some((answer) => "problem" in answer && answer.problem.node === "n2");
    }, "the node without a link to be named");
    await openLink(SOURCES.n2, await tokenOf("n2"));
    await pollUntil(async () => {
      const answers = linesOf(await server.kubectl(["get", "--raw", `${PATH}/flows`]));
      return answers.every((answer) => !("problem" in answer));
    }, "the node to answer again");
  });

  testServer("goes on when the controllers start again, with the same authority", async () => {
    const before = await authority();
    expect(before).toContain("BEGIN CERTIFICATE");
    expect(`${readFileSync(server.auditLog)}${controllers.log()}`).not.toContain("PRIVATE KEY");
    await controllers.kill();
    controllers = startControllers(environment);
    await controllers.untilLogged("Serving the API of flows");
    // The replica waits for the nodes, so that the first answer is complete.
    const answers = linesOf(await server.kubectl(["get", "--raw", `${PATH}/flows`]));

    expect(answers.filter((answer) => "problem" in answer)).toEqual([]);
    expect(flowsIn(answers)).toHaveLength(3);
    expect(await authority()).toBe(before);
  });
});
