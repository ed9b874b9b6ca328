/**
 * What a hostile pod can choose - packets, its names, its labels - is neither the record of somebody else nor a line, a colour or a
 * command of the one who reads it.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { identity } from "../../src/identity.ts";
import { ENDPOINT, NODE_AGENT_CONFIGURATION } from "../../src/model/kinds.ts";
import { workloadEndpoint } from "../../src/model/workload-endpoint.ts";
import { openPolicySite, type PodEnd, type PolicySite } from "../policy/policy-site.ts";
import { openConntrackTable } from "../support/conntrack-table.ts";
import { hostProblem } from "../support/host.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { sendFrame } from "../support/raw-frame.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { askFlows, flowsConfiguration, shortenTimeouts, untilCollecting } from "./flow-site.ts";
import { attempt, serveTraffic } from "./traffic.ts";

const needs = [hostProblem(), program("nft")];
const test = testNeeding(...needs);
const LOG_FILE = "/run/flows.jsonl";
const HOSTILE = [
  "a\"b'c`d$(reboot)",
  "line\nbreak\r\nand another",
  "\u001b[2J\u001b[31mred\u001b]0;title\u0007\u009b1m",
  '","verdict":"allowed"},{"flow":{"id":"forged"}}\n{"flow":{"id":"forged"}}',
  "\u202eright to left\u2066",
  "<script>alert(1)</script> | ; & %s %n",
];

describe("a hostile pod", () => {
  let site: PolicySite;
  let mallory: PodEnd;
  let victim: PodEnd;
  let server: PodEnd;
  let listening: Disposable;
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    site = await openPolicySite();
    for (const namespace of ["mallory", "shop"]) await site.labelNamespace(namespace, {});
    mallory = await site.addPod("mallory/mallory", { app: "mallory" });
    victim = await site.addPod("shop/victim", { app: "victim" });
    server = await site.addPod("shop/server", { app: "server" });
    const configuration = flowsConfiguration({ flowLogFile: LOG_FILE });
    const value = NODE_AGENT_CONFIGURATION.codec.write(configuration);
    await site.store.commit([{ kind: "put", key: NODE_AGENT_CONFIGURATION.key({ name: "default" }), value }]);
    await site.setPolicies([
      {
        ...{ namespace: "shop", name: "server" },
        spec: {
          selector: "app == 'server'",
          types: ["Ingress"],
          ingress: [
            { action: "Allow", destination: { ports: [80] }, protocol: "TCP" },
            { action: "Allow", destination: { ports: [80] }, protocol: "UDP" },
          ],
        },
      },
    ]);
    await site.untilApplied();
    await untilCollecting(site.site.host);
    shortenTimeouts(site.site.host.netns);
    listening = await serveTraffic(server);
  });
  afterAll(async () => {
    listening?.[Symbol.dispose]();
    await site?.[Symbol.asyncDispose]();
  });

  const flowsSince = async (since: number) => {
    using table = openConntrackTable(site.site.host.netns);
    table.list();
    const { flows } = await askFlows(site.site.host, `since=${since}`);
    return flows.filter(({ start }) => start >= since);
  };
  const send = (port: number) =>
    attempt(site.site.host, { from: mallory, address: server.addresses[0], protocol: "udp", port, up: 0, down: 0 });

  test("makes no record of another pod by packets with its address", async () => {
    const since = Date.now();
    const { host } = site.site;
    const [{ ifindex, link_index: peer }] = JSON.parse(
      await host.must(["nsenter", `--net=${mallory.pod.netns}`, "ip", "-j", "link", "show", "eth0"]),
    );
    const links: readonly { ifindex: number; address: string }[] = JSON.parse(await host.must(["ip", "-j", "link"]));
    const mac = links.find((link) => link.ifindex === peer)?.address ?? "";
    const spoofed = [victim.addresses[0], "198.51.100.2", "192.0.2.1", "127.0.0.1"];
    // Allowed by the policy of the server, and denied by it.
    for (const source of spoofed)
      for (const port of [80, 4_444])
        for (let count = 0; count < 3; count++)
          sendFrame(mallory.netns, ifindex, { mac, tags: [], source, target: server.addresses[0], port });
    // After them: its own, so that they have been seen.
    await send(80);
    await send(4_444);
    await pollUntil(async () => (await flowsSince(since)).length >= 2, "its own flows");

    const flows = await flowsSince(since);
    expect(flows.filter(({ source }) => source.name === "victim" || source.kind === "host")).toEqual([]);
    expect(flows.filter(({ source, verdict }) => spoofed.includes(source.address) && verdict === "allowed")).toEqual(
      [],
    );
    expect(new Set(flows.map(({ verdict, source }) => `${verdict} ${source.name}`))).toEqual(
      new Set(["allowed mallory", "denied mallory"]),
    );
  });

  test("ends no line and speaks to no terminal by its labels", async () => {
    const since = Date.now();
    for (const text of HOSTILE) {
      await relabel(mallory, text);
      await send(80);
      await send(4_444);
    }
    const isDone = async () => (await flowsSince(since)).length >= 2 * HOSTILE.length;
    await pollUntil(isDone, "the flows");

    const flows = await flowsSince(since);
    const allowed = flows.filter(({ verdict }) => verdict === "allowed");
    expect(allowed).toHaveLength(HOSTILE.length);
    expect(flows.some(({ id }) => id === "forged")).toBe(false);
    // The records say what the datastore says, or has said since: names are certain after some seconds.
    const labels = allowed.map(({ source }) => source.labels?.["evil"] ?? "none");
    expect(labels.filter((label) => !HOSTILE.includes(label))).toEqual([]);

    const log = readFileSync(site.site.host.view(LOG_FILE), "utf8");
    const lines = log
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines.filter((line) => line.id === "forged" || line.flow?.id === "forged")).toEqual([]);

    for (const words of [
      [],
      ["-o", "wide"],
      ["-o", "json"],
      ["top"],
      ["graph"],
      ["graph", "-o", "dot"],
      ["graph", "-o", "svg"],
    ]) {
      const { code, stdout, stderr } = await site.site.host.run([builtProgram(identity.adminTool), "flows", ...words]);
      expect({ words, code, stderr }).toEqual({ words, code: 0, stderr: expect.any(String) });
      expect({ words, found: controlCharacters(stdout + stderr) }).toEqual({ words, found: [] });
      expect(stdout).not.toMatch(/^\{"flow":\{"id":"forged"/m);
      if (words.includes("svg")) expect(stdout).not.toContain("<script>");
    }
  }, 60_000);

  /** As nobody but a writer of the datastore can, past all checks. The agent takes no other name of a pod for true. */
  async function relabel({ name, addresses }: PodEnd, text: string): Promise<void> {
    const { answers } = await site.store.read([
      { kind: "prefix", prefix: ENDPOINT.key({ namespace: "mallory", name: "" }) },
    ]);
    const entry = answers[0]?.find(({ value }) => value.includes(addresses[0]));
    if (entry === undefined) throw new Error(`no endpoint of ${name}`);
    const stored = workloadEndpoint.read(entry.value, entry.key);
    const metadata = { ...stored.metadata, labels: { ...stored.metadata.labels, evil: text } };
    const value = workloadEndpoint.write({ ...stored, metadata });
    await site.store.commit([{ kind: "put", key: entry.key, value }]);
    await site.untilApplied();
  }
});

/** Also those that turn the direction of text; not the end of a line. */
function controlCharacters(text: string): readonly string[] {
  return Array.from(text).filter((character) => /[\p{Cc}\p{Cf}]/u.test(character) && character !== "\n");
}
