/**
 * docs/flows.md is true: its commands are typed on a host with the containers of docs/policy-recipes.md, and what they print is
 * about the packets of these containers. A container is a network namespace, connected by the plugins as podman would, and
 * `podman exec` enters it, with the programs of busybox: the page needs no more of podman.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { identity } from "../../src/identity.ts";
import { BIN, startAgent } from "../agent/agent.ts";
import { documentsOfPage, openDocsPage } from "../support/docs-page.ts";
import { type Host, hostProblem, openHost } from "../support/host.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { startRuntime } from "../support/runtime-driver.ts";

const needs = [hostProblem(), program("busybox"), program("nft")];
const testPage = testNeeding(...needs);

const flows = openDocsPage("flows.md");
const [CLIENT, DATABASE, POLICY] = ["client", "database", "default/database"];
const ADDRESSES = { client: "10.66.0.20", database: "10.66.0.54" } as const;
const PLUGINS = "/opt/cni/bin";

describe("the page about flows", () => {
  let host: Host;
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    host = await openHost();
    await prepareHost(host);
  }, 60_000);
  afterAll(() => host?.[Symbol.asyncDispose]());

  /** With more time for the agent: the machine may be busy. */
  const type = (title: string) =>
    flows.type(title, { host, environment: { PATH }, replacing: { "sleep 1\n": "sleep 3\n" } });
  const tool = (words: readonly string[]) => host.run([`${PLUGINS}/${identity.adminTool}`, ...words]);
  const show = (words: string) => tool(["flows", ...words.split(" ").filter((word) => word !== "")]);

  testPage("before they are switched on, the command says how", async () => {
    const { code, stderr } = await show("");

    expect([code, stderr]).toEqual([1, expect.stringContaining("patch nodeagentconfiguration default")]);
  });

  testPage("are switched on with a setting, and recorded from then on", async () => {
    const printed = await type("Switch flows on");

    expect(printed).toContain("nodeagentconfiguration/default patched");
    await pollUntil(async () => (await show("--last 1")).code === 0, "the agent to record flows");
  });

  testPage("lead in five commands from a denied connection to the fixed policy", async () => {
    const printed = await type("My connection is denied");

    expect(printed.match(/^(rows|no answer)$/gm)).toEqual(["no answer", "rows"]);
    const lines = printed.split("\n");
    expect(lines.find((line) => /\bdenied +end of tier default/.test(line))).toMatch(
      new RegExp(`${CLIENT} +${DATABASE} +5432/tcp`),
    );
    expect(printed).toMatch(/^Verdict: +denied$/m);
    expect(printed).toMatch(new RegExp(`^Ingress of ${DATABASE}: denied$`, "m"));
    expect(printed).toMatch(new RegExp(`${CLIENT} +${DATABASE} +5432/tcp +allowed +${POLICY} ingress\\[0\\]`));
  });

  testPage("are selected, followed, summed and drawn", async () => {
    const printed = await type("Look at flows");

    expect(printed).toContain("workload ingress: allow by NetworkPolicy");
    expect(printed).toMatch(/^\{"id":.*"verdict":"denied"/m);
    expect(printed).toMatch(new RegExp(`^\\d+ +denied +${CLIENT} +${DATABASE} +5432/tcp`, "m"));
    expect(printed).toMatch(new RegExp(`^ +-> ${DATABASE} 5432/tcp: denied`, "m"));
    expect(await host.must(["cat", `${host.directory}/flows.svg`])).toContain("</svg>");
  });

  testPage("become a policy: what was recorded passes, anything else is denied", async () => {
    host.start(
      ["ip", "netns", "exec", "database", "busybox", "httpd", "-f", "-p", "8081", "-h", `${host.directory}/www`],
      "other.log",
    );
    const printed = await type("From recorded traffic to a policy");

    expect(printed.match(/^(rows|denied)$/gm)).toEqual(["rows", "denied"]);
    expect(printed).toMatch(new RegExp(`${CLIENT} +${DATABASE} +8081/tcp +denied +end of tier default`));
    const [example = ""] = [
      ...(documentsOfPage("flows.md").get("From recorded traffic to a policy")?.split("---") ?? []),
    ];
    expect(printed.replaceAll(/\(\d+ flows?\)/g, "")).toContain(example.replaceAll(/\(\d+ flows?\)/g, ""));
  });

  testPage("show that no rule of the draft is unused", async () => {
    const printed = await type("Rules that nobody needs");

    expect(printed).toContain("flows of 1 node are known");
    expect(printed).not.toContain("draft-");
  });

  testPage("switched off, nothing of them is left in the kernel, and no process", async () => {
    const patch = JSON.stringify({ spec: { flows: "Disabled" } });
    expect((await tool(["patch", "nodeagentconfiguration", "default", "--patch", patch])).code).toBe(0);

    await pollUntil(async () => (await show("")).code === 1, "the flows to be off");
    const rules = await host.must(["nft", "list", "ruleset"]);
    expect(rules).not.toMatch(/ct label set|log .*group 30310/);
    const collectors = () => host.run(["pgrep", "--full", "[c]ollect-flows"]);
    await pollUntil(async () => (await collectors()).stdout === "", "the collector to end");
  });

  testPage("has no section that is not tried", () => {
    expect(flows.untried()).toEqual([]);
  });
});

/** Of this host alone. */
const OWN_PROGRAMS = "/opt/bin";
const PATH = `${OWN_PROGRAMS}:${PLUGINS}:${process.env["PATH"] ?? ""}`;
const PODMAN = `#!/bin/sh
[ "$1" = exec ] || exit 125
name=$2
shift 2
exec ip netns exec "$name" busybox "$@"
`;
const POOL = `apiVersion: ${identity.apiGroup}/v3
kind: IPPool
metadata: { name: pods }
spec: { cidr: 10.66.0.0/24 }
`;

/** A network of the embedded datastore, the agent, a database that answers, and a client. */
async function prepareHost(host: Host): Promise<void> {
  const conflist = readFileSync(`${import.meta.dir}/../../deploy/10-${identity.product}-embedded.conflist`, "utf8");
  host.writeFile(`/etc/cni/net.d/10-${identity.product}.conflist`, conflist);
  host.writeFile(`${OWN_PROGRAMS}/podman`, PODMAN);
  await host.must([
    "sh",
    "-ec",
    `chmod 755 ${OWN_PROGRAMS}/podman; ip link set lo up; mkdir -p ${PLUGINS}; cp -a ${BIN}/. ${PLUGINS}/`,
  ]);
  const tool = `${PLUGINS}/${identity.adminTool}`;
  await host.must([tool, "datastore", "init"]);
  await host.must([tool, "node", "register"]);
  await host.must([tool, "apply", "-f", "-"], { stdin: POOL });
  await host.must([tool, "label", "container", "database", "role=database"]);
  await startAgent(host);
  const runtime = startRuntime({ conflist: JSON.parse(conflist), pluginDirectory: PLUGINS, run: host.run });
  for (const [name, address] of Object.entries(ADDRESSES)) {
    await host.must(["sh", "-ec", `ip netns add ${name}; ip -n ${name} link set lo up`]);
    await runtime.add({
      containerId: `${name}-0123456789`,
      netns: `/var/run/netns/${name}`,
      args: `IgnoreUnknown=1;K8S_POD_NAME=${name}`,
      capabilities: { ips: [`${address}/32`] },
    });
  }
  host.writeFile(`${host.directory}/www/index.html`, "rows\n");
  host.start(
    ["ip", "netns", "exec", "database", "busybox", "httpd", "-f", "-p", "5432", "-h", `${host.directory}/www`],
    "database.log",
  );
}
