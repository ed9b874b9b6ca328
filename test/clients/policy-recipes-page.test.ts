/**
 * docs/policy-recipes.md and docs/concepts.md are true: the commands are run on a host that docs/podman.md has set up, with the
 * containers of that page, and packets of containers and of other machines show what each policy does. The recipes for Kubernetes: test/kube/policy-recipes-page.test.ts.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { API_VERSION, identity } from "../../src/identity.ts";
import { askFromAddress } from "../support/ask-from-address.ts";
import { serveDns } from "../support/dns-server.ts";
import { openDocsPage } from "../support/docs-page.ts";
import { type Host, openHost } from "../support/host.ts";
import { serveTcp } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { podmanProblem } from "../support/podman.ts";
import { pollUntil } from "../support/poll.ts";
import { SSH_RULES, withoutFailsafe } from "../support/ssh-recipe.ts";
import { agentServes, preparePodmanHost } from "./podman-host.ts";

const needs = [podmanProblem(), program("dpkg-deb"), program("curl"), program("nft")];
const testPage = testNeeding(...needs);

const podman = openDocsPage("podman.md", { without: /^(apt-get|make) .*$/gm });
const recipes = openDocsPage("policy-recipes.md");
const concepts = openDocsPage("concepts.md");

const [ADMINISTRATOR, STRANGER] = ["192.0.2.10", "192.0.2.99"];
const [SSH, PUBLISHED] = [22, 8080];
/** The sections of the page about podman that its reader has typed before. */
const READ_BEFORE = ["Switch the network on", "Two containers and a published port", "Policy"];
/** More time for the agent: the machine may be busy. */
const UNHURRIED = { "sleep 1\n": "sleep 3\n" };
/** Not a name of a node: upper case. */
const HOST_NAME = "Node-7.example.org";
const SETTINGS = ["nodeagentconfiguration", "default"];

describe("the page of policy recipes", () => {
  let host: Host;
  let listeners: readonly Disposable[] = [];
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    host = await openHost({ hostName: HOST_NAME });
    await preparePodmanHost(host);
    // Removed first: it may be a link that leads out of the host.
    await host.must(["sh", "-ec", "rm -f /etc/resolv.conf; echo nameserver 192.0.2.1 >/etc/resolv.conf"]);
    await podman.type("Install", { host });
    await agentServes(host);
    for (const title of READ_BEFORE) await podman.type(title, { host, replacing: UNHURRIED });
    listeners = [await serveDns(host.view("/run/netns/gateway"), "192.0.2.1"), serveTcp(host.netns, "ssh", SSH)];
  }, 180_000);
  afterAll(async () => {
    for (const listener of listeners) listener[Symbol.dispose]();
    await host?.[Symbol.asyncDispose]();
  });

  const type = (title: string, replacing: Readonly<Record<string, string>> = {}) =>
    recipes.type(title, { host, replacing: { ...UNHURRIED, ...replacing } });

  /** What another machine gets from a port of the host. */
  const reply = (from: string, port: number) =>
    askFromAddress(host, { netns: "gateway", source: from, target: "192.0.2.2", port });

  async function repliesSoon(port: number, expected: Readonly<Record<string, string>>): Promise<void> {
    const found = async () =>
      Object.fromEntries(await Promise.all(Object.keys(expected).map(async (from) => [from, await reply(from, port)])));
    await pollUntil(async () => Bun.deepEquals(await found(), expected), `port ${port}: ${JSON.stringify(expected)}`);
  }

  const verdicts = (printed: string) => [...printed.matchAll(/^Verdict: +(\w+)/gm)].map(([, verdict]) => verdict);
  const answers = (printed: string) => printed.match(/^(pages|rows|no answer)$/gm);

  testPage("starts the containers of the examples, which are open", async () => {
    expect(answers(await type("The containers of the examples"))).toEqual(["pages", "rows"]);
    await repliesSoon(PUBLISHED, { [ADMINISTRATOR]: "pages", [STRANGER]: "pages" });
  });

  testPage("closes everything but what is opened", async () => {
    const printed = await type("Default deny");

    expect(answers(printed)).toEqual(["pages", "rows", "no answer"]);
    expect(verdicts(printed)).toEqual(["denied"]);
  });

  testPage("lets containers ask DNS, and nothing else", async () => {
    const printed = await type("Allow DNS only");

    expect(printed).toContain("198.18.0.1");
    expect(answers(printed)).toEqual(["no answer"]);
  });

  testPage(
    "says before SSH is closed whom it will let in, also with a wrong address of the administrators",
    async () => {
      const [, rule2] = SSH_RULES;
      const wrong = await type("Protect SSH on the host", { [`nets: [${ADMINISTRATOR}/32]`]: "nets: [192.0.2.11/32]" });
      expect(verdicts(wrong)).toEqual(["allowed", "allowed"]);
      expect(withoutFailsafe(wrong)).toEqual([`denied by ${rule2}`, `denied by ${rule2}`]);

      const right = await type("Protect SSH on the host");
      const [rule1] = SSH_RULES;
      expect(verdicts(right)).toEqual(["allowed", "allowed"]);
      expect(withoutFailsafe(right)).toEqual([`allowed by ${rule1}`, `denied by ${rule2}`]);
      expect(right).toContain(`node ${HOST_NAME.toLowerCase()}`);
      // What the page explains; the second apply changes no policy.
      expect(wrong).toContain(
        `note: restricts ingress of host ${HOST_NAME.toLowerCase()} (hostendpoint/this-host): rules deny a part, everything else stays open, and so do failsafe ports`,
      );
      expect(await reply(STRANGER, SSH)).toBe(`ssh ${STRANGER}`);
    },
  );

  testPage("closes SSH of the host to everybody but administrators, and keeps other settings", async () => {
    const others = { defaultEndpointToHostAction: "Drop" };
    const configuration = {
      ...{ apiVersion: API_VERSION, kind: "NodeAgentConfiguration", metadata: { name: "default" } },
      spec: others,
    };
    await host.must([identity.adminTool, "apply", "-f", "-"], { stdin: JSON.stringify(configuration) });
    const settings = async () =>
      JSON.parse(await host.must([identity.adminTool, "get", ...SETTINGS, "-o", "json"])).spec;

    const printed = await type("Close SSH to everybody else");
    expect(verdicts(printed)).toEqual(["allowed", "denied"]);
    await repliesSoon(SSH, { [ADMINISTRATOR]: `ssh ${ADMINISTRATOR}`, [STRANGER]: "silence" });
    expect(await settings()).toMatchObject(others);
    expect(await concepts.type("Host endpoint", { host })).toMatch(/^this-host /m);

    await type("Open SSH again");
    await repliesSoon(SSH, { [ADMINISTRATOR]: `ssh ${ADMINISTRATOR}`, [STRANGER]: `ssh ${STRANGER}` });
    expect(await settings()).toEqual(others);
    await host.must([identity.adminTool, "delete", ...SETTINGS]);
  });

  testPage("isolates a network", async () => {
    const printed = await type("Isolate a network or a namespace");

    expect(answers(printed)).toEqual(["rows", "no answer"]);
    expect(printed).toMatch(/^ +Policies: +1\. +NetworkPolicy default\/isolated .*no rule matches$/m);
  });

  testPage("opens a published port to some addresses only", async () => {
    const printed = await type("A published port for some addresses");

    expect(verdicts(printed)).toEqual(["allowed", "denied"]);
    await repliesSoon(PUBLISHED, { [ADMINISTRATOR]: "pages", [STRANGER]: "silence" });
  });

  describe("and that of concepts", () => {
    const shown: Readonly<Record<string, RegExp>> = {
      Pool: /^pods +10\.66\.0\.0\/24 /m,
      Block: /10\.66\.0\.\d+\/26/,
      Handle: /pods\.[0-9a-f]{64}/,
      Endpoint: /^default .* database .*role=database/m,
      Policy: /^default +pages /m,
      // The built-in one is not listed.
      Tier: /^No resources found\.$/m,
      Profile: /^pods /m,
      "Node agent": /^Node agent: running$/m,
      Datastore: /^ok +ready /m,
    };
    for (const [title, expected] of Object.entries(shown)) {
      testPage(`shows it: ${title}`, async () => {
        expect(await concepts.type(title, { host })).toMatch(expected);
      });
    }
    testPage("has no section that is not tried", () => {
      expect(concepts.untried()).toEqual([]);
    });
  });

  testPage("leaves no policy and no container", async () => {
    await type("Clean up");

    const kinds = "workloadendpoints,networkpolicies,containerlabels";
    expect(await host.must([identity.adminTool, "get", kinds, "-A", "-o", "name"])).toBe("");
    expect(recipes.untried()).toEqual([]);
  });
});
