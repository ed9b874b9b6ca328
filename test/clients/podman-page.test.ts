/**
 * docs/podman.md is true: its commands are run in their order, on a private host
 * with a gateway that knows no pod. Only the packages and the image are there before. The agent runs from the installation until
 * the package is purged, as on every host.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import { openDocsPage } from "../support/docs-page.ts";
import { type Host, openHost } from "../support/host.ts";
import { program, testNeeding } from "../support/needs.ts";
import { BIN_DIRECTORY } from "../support/network-under-test.ts";
import { podmanProblem } from "../support/podman.ts";
import { agentServes, isAgentRunning, preparePodmanHost } from "./podman-host.ts";

const needs = [podmanProblem(), program("dpkg-deb"), program("curl"), program("tc"), program("nft")];
const testPage = testNeeding(...needs);

const page = openDocsPage("podman.md", { without: /^(apt-get|make) .*$/gm });

describe("the page about podman", () => {
  let host: Host;
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    host = await openHost();
    await preparePodmanHost(host);
  });
  afterAll(() => host?.[Symbol.asyncDispose]());

  /** With more time for the agent: the machine may be busy. */
  const type = (title: string) => page.type(title, { host, replacing: { "sleep 1\n": "sleep 3\n" } });

  testPage("installs the package, which starts the agent", async () => {
    expect(await type("Install")).toContain(`Setting up ${identity.product}`);
    await agentServes(host);
  });

  testPage("switches the network on, and a container reaches the gateway", async () => {
    const printed = await type("Switch the network on");

    expect(printed).toMatch(/^network pods created: \S+$/m);
    expect(printed).toMatch(/^pods +pods \(10\.66\.0\.0\/24\) +no +0 /m);
    expect(printed).toMatch(new RegExp(`^\\w+ +pods +${identity.product}$`, "m"));
    expect(printed).toContain(" 1 packets received");
  });

  testPage("runs containers that reach each other, and publishes a port", async () => {
    const printed = await type("Two containers and a published port");
    const [container = "none"] = /^[0-9a-f]{64}$/m.exec(printed) ?? [];
    const answers = printed.split("\n").filter((line) => line === container.slice(0, 12));

    expect(answers).toHaveLength(2);
    expect(printed).toMatch(/^default +\S+-eth0 +web +\S+ +10\.66\.0\.\d+/m);
    expect(printed).toMatch(/^Container: +web$/m);
    expect(printed).toMatch(/^ {2}workload: web$/m);
    expect(printed).toMatch(/^Host: +\S/m);
    expect(printed).toMatch(/^web +pods +10\.66\.0\.\d+ +\S+ +0$/m);
    expect(printed).toMatch(/^Node agent: +running/m);
    expect(printed).toContain("\nEverything is well.\n");
  });

  testPage("gives the address that is asked for, once", async () => {
    const printed = await type("A fixed address");

    expect(printed).toContain("inet 10.66.0.77/32 ");
    expect(printed).toMatch(/"10\.66\.0\.77": it is taken by container "fixed",.*\nrefused\n$/);
  });

  testPage("shapes both directions", async () => {
    expect((await type("A limited rate")).match(/tbf .* rate 10Mbit /g)).toHaveLength(2);
  });

  testPage("isolates a container by a policy, until it is deleted", async () => {
    const printed = await type("Policy");

    expect(printed.match(/^(rows|no answer)$/gm)).toEqual(["rows", "no answer", "rows", "rows", "rows", "rows"]);
    expect(printed).toMatch(/^containerlabels\/\S+\.web labelled$/m);
    expect(printed).toMatch(/^\S+\.web +\S+ +web +role=web /m);
    expect(printed).toMatch(/^containerlabels\/\S+\.web deleted$/m);
  });

  testPage("keeps other networks out of an isolated one, and nobody else", async () => {
    const printed = await type("Networks that do not reach each other");

    expect(printed.match(/^(kept out|cart)$/gm)).toEqual(["kept out", "cart", "cart"]);
    expect(printed).toMatch(/^Isolated: +yes/m);
    expect(printed).toContain('Cannot delete network "shop": containers are connected to it: cart');
    expect(printed).toMatch(/^cart is connected to it$/m);
  });

  testPage("leaves nothing that is in use, no program, no table and no directory, and no agent", async () => {
    expect(await isAgentRunning(host)).toBe(true);
    const printed = await type("Take it down");

    expect(await isAgentRunning(host)).toBe(false);
    expect(printed).toContain("0 addresses in use, 0 handles: no problems");
    const { product, runDirectory, stateDirectory, logDirectory, configDirectory } = identity;
    for (const path of [join(BIN_DIRECTORY, product), runDirectory, stateDirectory, logDirectory, configDirectory]) {
      expect([path, (await host.run(["sh", "-c", `test -e ${path}`])).code]).toEqual([path, 1]);
    }
    const tables = await host.must(["nft", "list", "tables"]);
    expect(tables.split("\n").filter((line) => line.includes(product))).toEqual([]);
  });

  testPage("has no section that is not tried", () => {
    expect(page.untried()).toEqual([]);
  });
});
