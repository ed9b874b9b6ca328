/**
 * docs/policy-recipes.md and docs/concepts.md are true: the commands are run on a host that docs/podman.md has set up, and packets of
 * containers and of other machines show what each policy does. The recipes for Kubernetes: test/kube/policy-recipes-page.test.ts.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { hostname } from "node:os";
import { identity } from "../../src/identity.ts";
import { startAgent } from "../agent/agent.ts";
import { askFromAddress } from "../support/ask-from-address.ts";
import { serveDns } from "../support/dns-server.ts";
import { openDocsPage } from "../support/docs-page.ts";
import { type Host, openHost } from "../support/host.ts";
import { serveTcp } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { podmanProblem } from "../support/podman.ts";
import { pollUntil } from "../support/poll.ts";
import { preparePodmanHost } from "./podman-host.ts";

const needs = [podmanProblem(), program("dpkg-deb"), program("curl"), program("nft")];
const testPage = testNeeding(...needs);

const BY_HAND = { without: /^(apt-get|make|systemctl) .*$/gm };
const podman = openDocsPage("podman.md", BY_HAND);
const recipes = openDocsPage("policy-recipes.md", BY_HAND);
const concepts = openDocsPage("concepts.md");

const [ADMINISTRATOR, STRANGER] = ["192.0.2.10", "192.0.2.99"];
const [SSH, PUBLISHED] = [22, 8080];

describe("the page of policy recipes", () => {
  let host: Host;
  let listeners: readonly Disposable[] = [];
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    host = await openHost();
    await preparePodmanHost(host);
    // Removed first: it may be a link that leads out of the host.
    await host.must(["sh", "-ec", "rm -f /etc/resolv.conf; echo nameserver 192.0.2.1 >/etc/resolv.conf"]);
    for (const title of ["Install", "Switch the network on"]) await podman.type(title, { host });
    listeners = [await serveDns(host.view("/run/netns/gateway"), "192.0.2.1"), serveTcp(host.netns, "ssh", SSH)];
    await startAgent(host);
  }, 120_000);
  afterAll(async () => {
    for (const listener of listeners) listener[Symbol.dispose]();
    await host?.[Symbol.asyncDispose]();
  });

  /** With more time for the agent: the machine may be busy. */
  const type = (title: string) => recipes.type(title, { host, replacing: { "sleep 1\n": "sleep 3\n" } });

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
    "closes SSH of the host to everybody but administrators, once it is not a failsafe port any more",
    async () => {
      expect(await reply(STRANGER, SSH)).toBe(`ssh ${STRANGER}`);
      const printed = await type("Protect SSH on the host");

      expect(verdicts(printed)).toEqual(["allowed", "allowed", "allowed", "denied"]);
      expect(printed).toContain(`node ${hostname().toLowerCase()}`);
      await repliesSoon(SSH, { [ADMINISTRATOR]: `ssh ${ADMINISTRATOR}`, [STRANGER]: "silence" });
      expect(await concepts.type("Host endpoint", { host })).toMatch(/^this-host /m);

      await type("Open SSH again");
      await repliesSoon(SSH, { [ADMINISTRATOR]: `ssh ${ADMINISTRATOR}`, [STRANGER]: `ssh ${STRANGER}` });
    },
  );

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

    expect(await host.must([identity.adminTool, "get", "workloadendpoints,networkpolicies", "-A", "-o", "name"])).toBe(
      "",
    );
    expect(recipes.untried()).toEqual([]);
  });
});
