/**
 * The real node agent with a real sidecar of an earlier release, in a directory as that release has left it: the sidecar was
 * started before the agent, and has the directory mounted.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { EARLIER_RELEASE } from "../../src/alp/earlier-sidecars/sync-connection.ts";
import { identity } from "../../src/identity.ts";
import { ENDPOINT } from "../../src/model/kinds.ts";
import type { PolicyRule } from "../../src/model/policy-rule.ts";
import { SIDECAR_ANNOTATION } from "../../src/model/sidecar-annotation.ts";
import { type Agent, launchAgent } from "../agent/agent.ts";
import { partIfBuilt } from "../parts/build.ts";
import { type AskedCheck, checkRequest } from "../support/check-request.ts";
import { callGrpc } from "../support/csi.ts";
import { hostProblem } from "../support/host.ts";
import { askTcp, serveTcp } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { openPolicySite, type PodEnd, type PolicySite } from "./policy-site.ts";

const PORT = 8080;
const UID = "11111111-2222-3333-4444-555555555555";
const ROOT = "/run/nodeagent";
const [RECORD, DIRECTORY] = [`${ROOT}/creds/${UID}.json`, `${ROOT}/mount/${UID}`];
const AUTHORIZER = "/run/dikastes.sock";
const part = partIfBuilt("former-dikastes");
const needs = [hostProblem(), program("nft"), "missing" in part ? part.missing : undefined];
const test = testNeeding(...needs);

/** As in the pod: the directory is mounted, and the path of its socket is what the templates of the mesh say. */
const IN_POD = `
  mount -t tmpfs none /run/felix && mkdir /run/felix/nodeagent && mount --bind ${DIRECTORY} /run/felix/nodeagent
  exec "$0" server -l ${AUTHORIZER} -d /var/run/felix/nodeagent/socket`;

describe("a sidecar of an earlier release", () => {
  let site: PolicySite;
  let server: PodEnd;
  let client: PodEnd;
  let listener: Disposable;
  let agent: Agent;

  const view = (path: string) => site.site.host.view(path);
  const allow = (...rules: readonly Partial<PolicyRule>[]) =>
    site.setPolicies([
      {
        namespace: "x",
        name: "web",
        spec: { selector: "app == 'server'", ingress: rules.map((rule) => ({ action: "Allow", ...rule })) },
      },
    ]);
  const fromClient = { protocol: "TCP", source: { selector: "app == 'client'" } } as const;
  const connects = async () => (await askTcp(client.netns, server.addresses[0], PORT)).split(" ")[0];
  const untilConnects = (wanted: string) => pollUntil(async () => (await connects()) === wanted, wanted);
  /** As Envoy asks; the status in the response is that of the decision. */
  const decides = async (method: string, path: string, asked: AskedCheck = {}, version: "v2" | "v3" = "v3") => {
    const request = checkRequest({ source: client.addresses[0], http: { method, path }, ...asked });
    const { status, message } = await callGrpc(
      view(AUTHORIZER),
      `/envoy.service.auth.${version}.Authorization/Check`,
      request,
    );
    if (status !== 0) throw new Error(`the sidecar does not decide: ${status}`);
    return message.message(1).number(1) === 0 ? "allowed" : "denied";
  };
  const untilDecides = (method: string, path: string, wanted: string) =>
    pollUntil(async () => (await decides(method, path)) === wanted, `${method} ${path} to be ${wanted}`);
  const decisions = async () => [
    await decides("GET", "/public/a"),
    await decides("GET", "/private"),
    await decides("POST", "/public/a"),
    await decides("GET", "/public/a", { source: "192.0.2.99" }),
  ];
  const PUBLIC_ONLY = ["allowed", "denied", "denied", "denied"];

  beforeAll(async () => {
    if ("missing" in part || needs.some((need) => need !== undefined)) return;
    site = await openPolicySite();
    agent = site.agent;
    await site.labelNamespace("x", {});
    [server, client] = [
      await site.addPod("x/server", { app: "server" }),
      await site.addPod("x/client", { app: "client" }),
    ];
    listener = serveTcp(server.netns, "server", PORT);
    await allow({ ...fromClient, http: { methods: ["GET"], paths: [{ prefix: "/public/" }] } });
    await site.untilApplied();
    for (const name of ["creds", `mount/${UID}`, "../felix"]) mkdirSync(view(`${ROOT}/${name}`), { recursive: true });
    site.site.host.start(["unshare", "--mount", "sh", "-c", IN_POD, part.path], "dikastes.log");
    await pollUntil(() => existsSync(view(AUTHORIZER)), "the sidecar");
  });
  afterAll(async () => {
    listener?.[Symbol.dispose]();
    await site?.[Symbol.asyncDispose]();
  });

  test("denies everything, and nothing passes to it, while nobody serves it", async () => {
    expect(await decides("GET", "/public/a")).toBe("denied");
    expect(await connects()).toBe("silence");
  });

  test("decides by method, path and client as soon as the agent finds its directory; connections pass to it", async () => {
    const pod = { UID, Workload: "server", Namespace: "x", ServiceAccount: "default" };
    writeFileSync(view(RECORD), JSON.stringify(pod));
    await untilDecides("GET", "/public/a", "allowed");

    expect(await decisions()).toEqual(PUBLIC_ONLY);
    expect(await decides("GET", "/public/a", {}, "v2")).toBe("allowed");
    expect(await decides("GET", "/private", {}, "v2")).toBe("denied");
    await untilConnects("server");
    expect(statSync(view(`${DIRECTORY}/socket`)).mode & 0o777).toBe(0o777);
    const key = ENDPOINT.key({ namespace: "x", name: "node--1-k8s-server-eth0" });
    await pollUntil(async () => {
      const { answers } = await site.store.read([{ kind: "key", key }]);
      return (answers[0]?.[0]?.value ?? "").includes(`"${SIDECAR_ANNOTATION}":"${EARLIER_RELEASE}"`);
    }, "the annotation");
  });

  test("gets edits of policies and members, and rules with criteria that it does not know itself", async () => {
    await allow(
      { ...fromClient, http: { methods: ["GET"], paths: [{ exact: "/orders" }] } },
      {
        protocol: "TCP",
        source: { nets: ["192.0.2.0/24"], notNets: ["192.0.2.99/32"] },
        destination: { notPorts: [9000] },
        http: { methods: ["PUT"] },
      },
    );
    await untilDecides("GET", "/orders", "allowed");
    const put = (asked: AskedCheck) => decides("PUT", "/", asked);

    expect(await decides("GET", "/public/a")).toBe("denied");
    expect(await put({ source: "192.0.2.98" })).toBe("allowed");
    expect(await put({ source: "192.0.2.99" })).toBe("denied");
    expect(await put({ source: "192.0.2.98", destinationPort: 9000 })).toBe("denied");
    await site.labelPod("x/client", { app: "other" });
    await untilDecides("GET", "/orders", "denied");
    await site.labelPod("x/client", { app: "client" });
    await untilDecides("GET", "/orders", "allowed");
  });

  for (const { title, policies, paths } of [
    { title: "one message", policies: 1, paths: 5_000 },
    { title: "many messages", policies: 100, paths: 50 },
  ]) {
    test(`gets policies that are larger than its flow control window, in ${title}`, async () => {
      const path = (policy: number, index: number) => `/${policies}/${policy}/${index}/${"x".repeat(80)}`;
      await site.setPolicies(
        Array.from({ length: policies }, (_, policy) => {
          const all = Array.from({ length: paths }, (_, index) => ({ exact: path(policy, index) }));
          const ingress = [{ action: "Allow" as const, ...fromClient, http: { methods: ["GET"], paths: all } }];
          // The first replaces that of the other tests: without any, everything would be allowed.
          const name = policy === 0 ? "web" : `web${policy}`;
          return { namespace: "x", name, spec: { order: policy, selector: "app == 'server'", ingress } };
        }),
      );
      await untilDecides("GET", path(policies - 1, paths - 1), "allowed");

      expect(await decides("GET", path(0, 0))).toBe("allowed");
      expect(await decides("GET", path(policies, 0))).toBe("denied");
      expect(await decides("POST", path(0, 0))).toBe("denied");
      await untilConnects("server");
    });
  }

  test("goes on while no agent is there, and gets what changed meanwhile from the next", async () => {
    await allow({ ...fromClient, http: { methods: ["GET"], paths: [{ prefix: "/public/" }] } });
    await untilDecides("GET", "/public/a", "allowed");
    await agent.signal("KILL");
    await agent.ended;

    expect(await decisions()).toEqual(PUBLIC_ONLY);
    expect(await connects()).toBe("server");
    await allow({ ...fromClient, http: { methods: ["GET"], paths: [{ prefix: "/private" }] } });
    agent = launchAgent(site.site.host);
    await untilDecides("GET", "/private", "allowed");
    expect(await decides("GET", "/public/a")).toBe("denied");
    await untilConnects("server");
  });

  test("is not served at a directory of a pod that is not on this node", async () => {
    const other = `${ROOT}/mount/other`;
    mkdirSync(view(other));
    const pod = { UID: "other", Workload: "elsewhere", Namespace: "x", ServiceAccount: "default" };
    writeFileSync(view(`${ROOT}/creds/other.json`), JSON.stringify(pod));
    await pollUntil(() => existsSync(view(`${other}/socket`)), "the socket");
    const dial = ["sh", "-c", `timeout 2 "$0" server -l /run/other.sock -d ${other}/socket --debug 2>&1; true`];
    const { stdout } = await site.site.host.run([...dial, "path" in part ? part.path : ""]);

    expect(stdout).toContain("Starting synchronization");
    expect(stdout).not.toContain("Received sync API Update");
    rmSync(view(`${ROOT}/creds/other.json`));
    await pollUntil(() => !existsSync(view(other)), "the directory to go");
  });

  test("its socket goes with its pod, and connections no longer pass", async () => {
    rmSync(view(RECORD));
    await pollUntil(() => !existsSync(view(`${DIRECTORY}/socket`)), "the socket to go");
    const set = ["nft", "list", "set", "inet", identity.policyTable, "sidecars"];
    await pollUntil(async () => !(await site.site.host.must(set)).includes("elements"), "the interface to go");

    expect(await connects()).toBe("silence");
    expect(readFileSync(view(`${site.site.host.directory}/dikastes.log`), "utf8")).not.toContain("panic");
  });
});
