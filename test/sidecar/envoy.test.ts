/** The sidecar decides for real Envoy; the state comes from an agent of the test. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { join } from "node:path";
import type { SidecarRule } from "../../src/alp/protocol/sidecar-state.ts";
import { identity } from "../../src/identity.ts";
import { linesOf, unwrittenLines } from "../log/lines.ts";
import { makeRoot, makeSigned } from "../support/certificates.ts";
import { type Envoy, envoyProblem, startEnvoy } from "../support/envoy.ts";
import { type FakeAgent, firstUpdate, startFakeAgent, WELCOME } from "../support/fake-agent.ts";
import { insideNetns } from "../support/namespace-sockets.ts";
import { program, root, testNeeding } from "../support/needs.ts";
import { NetnsArea, type TestNetns } from "../support/netns.ts";
import { pollUntil } from "../support/poll.ts";
import { type Sidecar, startSidecar } from "../support/sidecar.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const [PLAIN, MUTUAL_TLS, TCP] = [8080, 8443, 9000];
const upstream = { address: "127.0.0.1", port: 80 };
/** Of the namespace: clients connect from them. */
const [CLIENT, SHOP, BANNED] = ["10.9.0.1", "10.9.0.2", "10.9.0.3"];

const any = {} as const;
const rules: readonly SidecarRule[] = [
  { index: 0, action: "Deny", source: { nets: [`${BANNED}/32`] }, destination: any },
  {
    index: 1,
    action: "Allow",
    source: any,
    destination: any,
    http: { methods: ["GET"], paths: [{ prefix: "/public" }] },
  },
  {
    index: 2,
    action: "Allow",
    source: { sets: ["shop"], identities: "frontends" },
    destination: {
      ports: {
        ranges: [
          [PLAIN, PLAIN],
          [MUTUAL_TLS, MUTUAL_TLS],
        ],
      },
    },
    http: { methods: ["GET", "POST"], paths: [{ exact: "/orders" }] },
  },
  { index: 3, action: "Allow", source: { sets: ["shop"] }, destination: { ports: { ranges: [[TCP, TCP]] } } },
];
const state = firstUpdate({
  policies: { web: { title: "shop/web", rules } },
  sets: { shop: { members: [SHOP] }, frontends: { members: ["shop/frontend"] } },
});

const problems = [root, program("ip"), program("curl"), program("openssl"), envoyProblem()];
const testEnvoy = testNeeding(...problems);

describe("the sidecar beside Envoy", () => {
  const area = new NetnsArea("sidecar");
  const undo = new AsyncDisposableStack();
  let netns: TestNetns;
  let folder: string;
  let envoy: Envoy;
  let sidecar: Sidecar;
  let agent: FakeAgent;
  let agentSocket: string;

  beforeAll(async () => {
    if (problems.some((problem) => problem !== undefined)) return;
    area.sweep();
    netns = area.create();
    undo.defer(() => area.sweep());
    for (const address of [CLIENT, SHOP, BANNED]) {
      Bun.spawnSync(["ip", "-n", netns.name, "address", "add", `${address}/32`, "dev", "lo"]);
    }
    const directory = temporaryDirectory("sidecar");
    undo.defer(directory.remove);
    folder = directory.path;
    const authority = makeRoot(folder, "authority");
    makeSigned(folder, "frontend", authority, { names: ["URI:spiffe://cluster.local/ns/shop/sa/frontend"] });
    makeSigned(folder, "other", authority, { names: ["URI:spiffe://cluster.local/ns/shop/sa/other"] });
    makeSigned(folder, "foreign", authority, { names: ["URI:spiffe://other.domain/ns/shop/sa/frontend"] });
    const mutualTls = { ...makeSigned(folder, "server", authority), authority: authority.cert };
    const application = insideNetns(netns.path, () =>
      Bun.serve({ hostname: "127.0.0.1", port: upstream.port, fetch: () => new Response("application") }),
    );
    undo.defer(() => application.stop(true));
    agentSocket = join(folder, "agent.sock");
    const listen = join(folder, "authorization.sock");
    sidecar = await startSidecar({
      netns: netns.path,
      directory: folder,
      agent: agentSocket,
      listen,
      options: ["--log-level=DEBUG"],
    });
    undo.defer(sidecar.kill);
    envoy = await startEnvoy({
      netns: netns.path,
      directory: folder,
      authorizer: listen,
      listeners: [
        { kind: "http", port: PLAIN, upstream },
        { kind: "http", port: MUTUAL_TLS, upstream, mutualTls },
        { kind: "tcp", port: TCP, upstream },
      ],
    });
    undo.defer(envoy.stop);
  });
  afterAll(() => undo.disposeAsync());

  interface Asked {
    readonly from?: string;
    readonly method?: string;
    readonly path: string;
    readonly port?: number;
    readonly certificate?: string;
  }

  /** The status of the response; "000" without one. */
  const ask = async ({ from = CLIENT, method = "GET", path, port = PLAIN, certificate }: Asked) => {
    const tls = certificate && [
      "-k",
      "--cert",
      join(folder, `${certificate}.crt`),
      "--key",
      join(folder, `${certificate}.key`),
    ];
    const url = `${tls ? "https" : "http"}://127.0.0.1:${port}${path}`;
    const options = ["-s", "--path-as-is", "-w", " %{http_code}", "-m", "5", "--interface", from, "-X", method];
    const command = ["nsenter", `--net=${netns.path}`, "curl", ...options, ...(tls || []), url];
    return (await Bun.spawn(command).stdout.text()).trim();
  };
  const ALLOWED = "application 200";
  const DENIED = "Denied by network policy\n 403";
  const metric = async (name: string) =>
    Number(new RegExp(`^\\w+_${name} (.*)$`, "m").exec(await sidecar.page("/metrics"))?.[1]);

  testEnvoy("denies everything before the agent has sent the policies", async () => {
    expect(await ask({ path: "/public" })).toBe(DENIED);
    expect(await sidecar.page("/readiness")).toStartWith("503 ");
    expect(await metric('decisions_total{verdict="not-synchronised"}')).toBe(1);
  });

  testEnvoy("decides by method, path, address, port and the identity of the client", async () => {
    agent = undo.use(startFakeAgent(agentSocket, [WELCOME, state]));
    await agent.applied(1);
    const certificates = { port: MUTUAL_TLS, path: "/orders", from: SHOP };
    const cases: readonly (readonly [Asked, string])[] = [
      [{ path: "/public" }, ALLOWED],
      [{ path: "/public/a?b" }, ALLOWED],
      [{ path: "/%70ublic/..//%70ublic" }, DENIED],
      [{ path: "/%70ublic/a//b/./c" }, ALLOWED],
      [{ path: "//public/private" }, DENIED],
      [{ path: "/private/../public" }, DENIED],
      [{ path: "/public/../private" }, DENIED],
      [{ path: "/public/;/../private" }, DENIED],
      [{ path: "/public%2e%2e" }, DENIED],
      [{ path: "/private" }, DENIED],
      [{ path: "/public", method: "PUT" }, DENIED],
      [{ path: "/public", from: BANNED }, DENIED],
      [{ path: "/orders" }, DENIED],
      [{ path: "/orders", from: SHOP }, ALLOWED],
      [{ path: "/orders", from: SHOP, method: "POST" }, ALLOWED],
      [{ path: "/orders/1", from: SHOP }, DENIED],
      [{ ...certificates, certificate: "frontend" }, ALLOWED],
      [{ ...certificates, certificate: "frontend", from: CLIENT }, DENIED],
      [{ ...certificates, certificate: "frontend", from: BANNED }, DENIED],
      [{ ...certificates, certificate: "other" }, DENIED],
      [{ ...certificates, certificate: "foreign" }, DENIED],
      [{ ...certificates, certificate: "other", path: "/public" }, ALLOWED],
      // Connections that are not HTTP for Envoy.
      [{ path: "/", port: TCP, from: SHOP }, ALLOWED],
      [{ path: "/public", port: TCP }, "000"],
    ];
    const results = await Promise.all(cases.map(([asked]) => ask(asked)));

    expect(results).toEqual(cases.map(([, expected]) => expected));
    expect(await sidecar.page("/readiness")).toBe("200 ready\n");
    const line = /Denied a request .*method="PUT".*/.exec(sidecar.log())?.[0];
    expect(line).toContain(
      'path="/public" port="8080" reason="no rule of tier \\"default\\" matches" source="10.9.0.1"',
    );
    expect(sidecar.log()).toContain('policy="shop/web"');
  });

  testEnvoy("decides by an update as soon as it is applied", async () => {
    const only = rules.slice(0, 1);
    agent.send({ type: "update", revision: 2, policies: { web: { title: "shop/web", rules: only } } });
    await agent.applied(2);

    expect(await ask({ path: "/public" })).toBe(DENIED);
  });

  testEnvoy("keeps the last state while the agent is away, and takes the whole state of the next one", async () => {
    agent.stop();
    expect(await ask({ path: "/public" })).toBe(DENIED);
    expect([await metric("agent_connected"), await metric("state_revision")]).toEqual([0, 2]);
    agent = undo.use(startFakeAgent(agentSocket, [WELCOME, state]));
    await agent.applied(1);

    expect(await ask({ path: "/public" })).toBe(ALLOWED);
    expect([await metric("agent_connected"), await metric("updates_total")]).toEqual([1, 3]);
  });

  testEnvoy("writes the log lines that the documentation shows", () => {
    expect(unwrittenLines((component) => component === identity.sidecar, linesOf(sidecar.log()))).toEqual([]);
  });

  testEnvoy("lets nothing through after it was killed, until it has the policies again", async () => {
    agent.stop();
    await sidecar.kill();
    expect(await ask({ path: "/public" })).toEndWith("403");
    await sidecar.restart();
    expect(await ask({ path: "/public" })).toEndWith("403");
    agent = undo.use(startFakeAgent(agentSocket, [WELCOME, state]));
    await agent.applied(1);
    await pollUntil(async () => (await ask({ path: "/public" })) === ALLOWED, "Envoy to reconnect");
  });

  testEnvoy("is not ready after SIGTERM, goes on deciding until Envoy is gone, and ends", async () => {
    sidecar.signal("SIGTERM");
    await pollUntil(async () => (await sidecar.page("/readiness")) === "503 stopping\n", "the end of readiness");
    expect([await ask({ path: "/public" }), await ask({ path: "/private" })]).toEqual([ALLOWED, DENIED]);
    await envoy.stop();

    await pollUntil(
      () =>
        sidecar.page("/liveness").then(
          () => false,
          () => true,
        ),
      "the end of the sidecar",
    );
  });
});
