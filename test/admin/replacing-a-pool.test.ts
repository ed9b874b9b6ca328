/** docs/replacing-a-pool.md is true: its commands are run in their order, with attached pods. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { dirname } from "node:path";
import { identity } from "../../src/identity.ts";
import { openDocsPage } from "../support/docs-page.ts";
import { nodeChange, poolChange } from "../support/ipam.ts";
import { root, testNeeding } from "../support/needs.ts";
import { openPluginSite, type PluginSite, type Pod } from "../support/plugin-site.ts";
import { builtProgram } from "../support/run-plugin.ts";

const needs = [root];
const testPage = testNeeding(...needs);
const page = openDocsPage("replacing-a-pool.md");

describe("the page about replacing a pool", () => {
  let site: PluginSite;
  let pods: readonly Pod[];
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    site = await openPluginSite("embedded", [poolChange("old", "10.1.0.0/16"), nodeChange("node-1")]);
    pods = [await site.makePod(), await site.makePod()];
    for (const pod of pods) await site.add(pod, { config: config() });
  }, 60_000);
  afterAll(() => site?.[Symbol.asyncDispose]());

  const config = () => site.config({ ipam: { type: identity.ipamType } });
  const type = (title: string) => {
    const { host, store } = site;
    const environment = {
      PATH: `${dirname(builtProgram(identity.adminTool))}:/usr/sbin:/usr/bin:/sbin:/bin`,
      DATASTORE_TYPE: "embedded",
      DATASTORE_PATH: String(store.config["datastore_path"]),
    };
    return page.type(title, { host, environment });
  };
  /** Every section ends with a check, which fails if it finds anything. */
  const isClean = (printed: string) => expect(printed.trimEnd().split("\n").at(-1)).toContain("no problems");
  const addressOf = async (pod: Pod) =>
    /inet (\S+)\//.exec(await site.inside(pod, ["ip", "-4", "-o", "addr", "show", "eth0"]))?.[1];

  testPage("creates the new pool", async () => {
    const printed = await type("Create the new pool");

    expect(printed).toContain("cidr: 10.1.0.0/16");
    expect(printed).toContain("ippool/new created");
    isClean(printed);
  });

  testPage("disables the old one: running pods keep their addresses, a new one gets one of the new pool", async () => {
    isClean(await type("Disable the old pool"));
    const another = await site.makePod();
    const { ips } = await site.add(another, { config: config() });

    expect(ips[0]?.address).toStartWith("10.8.");
    for (const pod of pods) {
      expect(await addressOf(pod)).toStartWith("10.1.");
      await site.quietly("CHECK", pod, { config: { ...config(), prevResult: await resultOf(pod) } });
    }
    await expect(type("Delete the old pool")).rejects.toThrow("in use");
    await site.quietly("DEL", another, { config: config() });
  });

  testPage("lists who still has an address of it, while pods are created again", async () => {
    const [first, second] = pods;
    if (first === undefined || second === undefined) throw new Error("there are no pods");
    await createAgain(first);
    const printed = await type("Create the pods again");
    expect(printed).toContain("old (disabled)");
    expect(printed.match(/^10\.1\.\S+ .*old/gm)).toHaveLength(1);
    isClean(printed);
    await createAgain(second);

    expect(await addressOf(first)).toStartWith("10.8.");
  });

  testPage("deletes the old pool, with its blocks", async () => {
    const printed = await type("Delete the old pool");

    expect(printed).toContain("ippool/old deleted");
    expect(printed).not.toMatch(/^old /m);
    isClean(printed);
    expect([...(await site.store.list()).keys()].filter((key) => key.includes("10.1."))).toEqual([]);
    expect(page.untried()).toEqual([]);
  });

  async function createAgain(pod: Pod): Promise<void> {
    await site.quietly("DEL", pod, { config: config() });
    await site.add(pod, { config: config() });
  }

  /** An ADD of an attachment that exists gives its result again. */
  const resultOf = (pod: Pod) => site.add(pod, { config: config() });
});
