/**
 * The accounts of a host that was installed by hand (docs/kubernetes.md), with the built programs and the files of
 * `deploy/`, on a real API server: plugin and agent work under the policies of node accounts and renew their tokens, and
 * tokens that were stolen from one host change nothing of another.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import { sign } from "node:crypto";
import { lstatSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { tokenExpiry } from "../../src/agent/node-setup/kubeconfig.ts";
import { identity } from "../../src/identity.ts";
import { AGENT_VERSION_ANNOTATION } from "../../src/model/agent-version-annotation.ts";
import { PLUGIN_ACCOUNT } from "../../src/release/roles/rules.ts";
import { type Agent, startAgent } from "../agent/agent.ts";
import { hostProblem } from "../support/host.ts";
import { apiServerProblem } from "../support/kube-apiserver.ts";
import { type KubePod, type KubeSite, NAMESPACE, NODE, openKubeSite } from "../support/kube-store-site.ts";
import { testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { isForbidden } from "../support/role-use.ts";

const problem = hostProblem() ?? apiServerProblem();
const testSite = testNeeding(problem);
setDefaultTimeout(120_000);

const { product, nodeAgent, configDirectory, labelPrefix, annotationPrefix } = identity;
const OTHER_NODE = "node-2";
const [OWN_TOKEN, PLUGIN_TOKEN] = [`${configDirectory}/node-token`, `${configDirectory}/plugin-token`];
const PLUGIN_CONFIG = `/etc/cni/net.d/${product}-kubeconfig`;
const HOUR = 3_600_000;

let site: KubeSite;
let agent: Agent | undefined;
beforeAll(async () => {
  if (problem !== undefined) return;
  site = await openKubeSite();
  await site.server.apply(JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name: OTHER_NODE } }));
  for (const file of [`rbac/${product}-host-accounts-kubernetes`, `admission/${product}-node-policies`]) {
    await site.server.apply(readFileSync(join(import.meta.dir, `../../deploy/${file}.yaml`), "utf8"));
  }
  await site.makePod("of-node-2", { spec: { nodeName: OTHER_NODE } });
});
afterAll(async () => {
  await agent?.signal("TERM");
  await agent?.ended;
  await site?.[Symbol.asyncDispose]();
});

const readOnHost = (path: string) => readFileSync(site.host.view(path), "utf8");
const tokenOf = async (account: string, node: string) =>
  (
    await site.server.kubectl([
      "create",
      "token",
      account,
      "--namespace=kube-system",
      "--duration=10m",
      "--bound-object-kind=Node",
      `--bound-object-name=${node}`,
    ])
  ).trim();

/** The same token, signed again with an earlier end: the API server grants none below ten minutes. */
function endingIn(seconds: number, token: string): string {
  const [header = "", claims = ""] = token.split(".");
  const changed = {
    ...JSON.parse(Buffer.from(claims, "base64url").toString()),
    exp: Math.floor(Date.now() / 1_000) + seconds,
  };
  const signed = `${header}.${Buffer.from(JSON.stringify(changed)).toString("base64url")}`;
  const key = readFileSync(site.server.credentials.tokens.key, "utf8");
  const { alg } = JSON.parse(Buffer.from(header, "base64url").toString());
  const signature = sign("sha256", Buffer.from(signed), alg === "ES256" ? { key, dsaEncoding: "ieee-p1363" } : key);
  return `${signed}.${signature.toString("base64url")}`;
}

function kubeconfigWith(tokenFile: string): string {
  const config = JSON.parse(readFileSync(site.server.credentials.writeKubeconfig("template", { token: "" }), "utf8"));
  const users = config.users.map(({ name }: { name: string }) => ({ name, user: { tokenFile } }));
  return JSON.stringify({ ...config, users });
}

interface Attack {
  readonly method: "PATCH" | "POST";
  readonly path: string;
  readonly body: object;
}

/** Sends a request with a token, from the host, and prints the answer. */
const SEND = `const [url, authority, token, method, body] = process.argv.slice(1);
const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
const headers = { authorization: "Bearer " + token, "content-type": type };
const answer = await fetch(url, { method, body, headers, tls: { ca: await Bun.file(authority).text() } });
console.log(answer.ok ? "" : await answer.text());`;

/** The complaint of the server; empty if it accepts the request, which changes nothing. */
async function refusalOf(token: string, { method, path, body }: Attack): Promise<string> {
  const { url, credentials } = site.server;
  const values = [`${url}${path}?dryRun=All`, credentials.authority.cert, token, method, JSON.stringify(body)];
  return (await site.host.must([process.execPath, "--eval", SEND, "--", ...values])).trim();
}

const merge = (path: string, annotations: object): Attack => ({
  method: "PATCH",
  path: `/api/v1/${path}/status`,
  body: { metadata: { annotations } },
});
const nodeRecord = (node: string) => merge(`nodes/${node}`, { [`${labelPrefix}node-spec`]: "{}" });
const podAddress = (pod: string) =>
  merge(`namespaces/${NAMESPACE}/pods/${pod}`, { [`${annotationPrefix}podIP`]: "10.0.0.9/32" });
const newToken = (account: string, node: string | undefined, expirationSeconds = 3_600): Attack => ({
  method: "POST",
  path: `/api/v1/namespaces/kube-system/serviceaccounts/${account}/token`,
  body: {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    spec: {
      expirationSeconds,
      ...(node === undefined ? {} : { boundObjectRef: { apiVersion: "v1", kind: "Node", name: node } }),
    },
  },
});

describe("a host with one account for plugin and agent", () => {
  testSite("works as before, and its token, which names no node, changes records of other nodes", async () => {
    await site.server.apply(
      readFileSync(join(import.meta.dir, `../../deploy/rbac/${nodeAgent}-kubernetes.yaml`), "utf8"),
    );
    const token = (await site.server.kubectl(["create", "token", product, "--namespace=kube-system"])).trim();
    const isPermitted = async () => (await refusalOf(token, nodeRecord(OTHER_NODE))) === "";
    await pollUntil(isPermitted, "the role");
    expect(await refusalOf(token, podAddress("of-node-2"))).toBe("");
  });
});

describe("a host with an account each", () => {
  let pod: KubePod;

  testSite("renews both tokens, under the role of the agent", async () => {
    site.host.writeFile(OWN_TOKEN, endingIn(40, await tokenOf(nodeAgent, NODE)));
    site.host.writeFile(`${configDirectory}/node-kubeconfig`, kubeconfigWith(OWN_TOKEN));
    site.host.writeFile(PLUGIN_CONFIG, kubeconfigWith(PLUGIN_TOKEN));
    const { name, cniVersion, ...plugin } = hostConfig();
    site.host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ name, cniVersion, plugins: [plugin] }));
    await site.admin(["node", "register"]);
    const audit = site.server.startAudit();
    agent = await startAgent(site.host);
    await pollUntil(() => renewals("the plugin's access") === 1, "a token of the plugin");
    await pollUntil(() => renewals("the node agent's access") === 1, "a token of the agent", 40_000);

    const modes = [OWN_TOKEN, PLUGIN_TOKEN].map((path) => lstatSync(site.host.view(path)).mode & 0o777);
    expect(modes).toEqual([0o600, 0o600]);
    const hoursLeft = [OWN_TOKEN, PLUGIN_TOKEN].map((path) =>
      Math.ceil(((tokenExpiry(readOnHost(path)) ?? 0) - Date.now()) / HOUR),
    );
    expect(hoursLeft).toEqual([7 * 24, 24]);
    await pollUntil(
      async () => (await annotations())[AGENT_VERSION_ANNOTATION] !== undefined,
      "the record of the Node",
    );
    expect(audit.requests().filter(isForbidden)).toEqual([]);
  });

  testSite("adds a pod with the account of the plugin", async () => {
    const audit = site.server.startAudit();
    pod = await site.makePod("web");
    await site.add(pod, hostConfig());
    expect(Object.keys(audit.counts(userOf(PLUGIN_ACCOUNT)))).toContain("patch pods/status");
    expect(audit.requests().filter(isForbidden)).toEqual([]);
  });

  testSite("borrows an address of another node's block, and gives it back", async () => {
    await site.admin(["apply", "-f", "-"], tinyPool());
    site.host.writeFile("/etc/other/token", await tokenOf(PLUGIN_ACCOUNT, OTHER_NODE));
    site.host.writeFile("/etc/other/kubeconfig", kubeconfigWith("/etc/other/token"));
    const ipam = { type: identity.ipamType, ipv4_pools: ["tiny"], assign_ipv6: "false" };
    const other = await site.makePod("first-in-tiny", { spec: { nodeName: OTHER_NODE } });
    const otherConfig = {
      ...hostConfig({ ipam, nodename: OTHER_NODE }),
      kubernetes: { kubeconfig: "/etc/other/kubeconfig" },
    };
    const borrower = await site.makePod("borrower");
    const audit = site.server.startAudit();
    const addresses = [...(await site.add(other, otherConfig)), ...(await site.add(borrower, hostConfig({ ipam })))];
    expect(addresses).toEqual(addresses.map(() => expect.stringMatching(/^10\.61\.0\.\d+\/32$/)));
    await site.del(borrower, hostConfig({ ipam }));
    await site.del(other, otherConfig);
    expect(audit.requests().filter(isForbidden)).toEqual([]);
    expect(await site.admin(["ipam", "check"])).toContain("no problems");
  });

  for (const [title, path] of [
    ["the plugin's", PLUGIN_TOKEN],
    ["the agent's", OWN_TOKEN],
  ] as const) {
    testSite(`loses nothing of other nodes by ${title} token, which was renewed`, async () => {
      const token = readOnHost(path);
      const attacks = [
        podAddress("of-node-2"),
        ...(path === PLUGIN_TOKEN
          ? []
          : [
              nodeRecord(OTHER_NODE),
              newToken(nodeAgent, OTHER_NODE),
              newToken(PLUGIN_ACCOUNT, OTHER_NODE),
              newToken(nodeAgent, undefined),
              newToken(PLUGIN_ACCOUNT, undefined),
              newToken(nodeAgent, NODE, 365 * 24 * 3_600),
            ]),
      ];
      for (const attack of attacks) expect(await refusalOf(token, attack)).toContain("with a token of node");
      expect(await refusalOf(token, podAddress("web"))).toBe("");
    });
  }

  testSite("deletes its pod", async () => {
    expect(await refusalOf(readOnHost(OWN_TOKEN), nodeRecord(NODE))).toBe("");
    await site.del(pod, hostConfig());
    expect(await site.server.kubectl(["get", "ipamhandles", "--output=name"])).not.toContain(pod.containerId);
    expect(agent?.log()).not.toContain("[ERROR]");
  });
});

function hostConfig(more: Readonly<Record<string, unknown>> = {}) {
  return site.config({ kubernetes: { kubeconfig: PLUGIN_CONFIG }, ...more });
}

function renewals(of: string): number {
  return (agent?.log() ?? "").split(`Renewed ${of}`).length - 1;
}

function userOf(account: string): string {
  return `system:serviceaccount:kube-system:${account}`;
}

async function annotations(): Promise<Readonly<Record<string, string>>> {
  const { metadata } = await site.server.get<{ metadata: { annotations?: Record<string, string> } }>("node", NODE);
  return metadata.annotations ?? {};
}

function tinyPool(): string {
  return `apiVersion: ${identity.apiGroup}/v3\nkind: IPPool\nmetadata: { name: tiny }\nspec: { cidr: 10.61.0.0/26 }\n`;
}
