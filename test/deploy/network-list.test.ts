/** The list that an installation puts on a node: right in itself, and without one of its sections the rest goes on. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../src/cni/json.ts";
import { decodeNetwork } from "../../src/cni/network-list.ts";
import { datastoreSettings } from "../../src/config/datastore-settings.ts";
import { decodeNetworkConfig } from "../../src/config/decode.ts";
import { INSTALLED_LOG_FILE } from "../../src/config/installed-network-list.ts";
import { identity } from "../../src/identity.ts";
import { hostProblem } from "../support/host.ts";
import { askTcp, serveTcp } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { BIN_DIRECTORY } from "../support/network-under-test.ts";
import { openPluginSite, type PluginSite } from "../support/plugin-site.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { startRuntime } from "../support/runtime-driver.ts";

type Entry = JsonObject & { readonly type: string };

type NetworkList = JsonObject & { readonly plugins: readonly Entry[] };

const list = installedList(`10-${identity.product}.conflist`);
const embedded = installedList(`10-${identity.product}-embedded.conflist`);

function installedList(name: string): NetworkList {
  return JSON.parse(readFileSync(join(import.meta.dir, "../../deploy", name), "utf8")) as NetworkList;
}

const needs = [hostProblem(), program("nft"), program("tc")];
const testList = testNeeding(...needs);

describe("the installed network list", () => {
  test("is a list that runtimes can read, and its first plugin accepts it without warnings", () => {
    const { plugins } = decodeNetwork(list);
    expect(plugins).toHaveLength(3);
    const { name, cniVersion } = list;
    const decoded = decodeNetworkConfig({ name, cniVersion, ...list.plugins[0] });
    expect(decoded).toMatchObject({ ok: true, warnings: [], config: { log: { filePath: INSTALLED_LOG_FILE } } });
  });

  test("has both chained plugins as documented", () => {
    expect(list.plugins.slice(1)).toEqual([
      { type: "portmap", snat: true, capabilities: { portMappings: true } },
      { type: "bandwidth", capabilities: { bandwidth: true, "io.kubernetes.cri.pod-annotations": true } },
    ]);
  });
});

describe("the installed network list of the embedded datastore", () => {
  test("differs from the other in its datastore alone, which is at the default path", () => {
    const { name, cniVersion } = embedded;
    const decoded = decodeNetworkConfig({ name, cniVersion, ...embedded.plugins[0] });

    expect(decoded).toMatchObject({ ok: true, warnings: [] });
    expect(decoded.ok && datastoreSettings(decoded.config)).toEqual({
      kind: "embedded",
      path: join(identity.stateDirectory, "datastore.sqlite"),
    });
    const withoutDatastore = ({ datastore_type: _, etcd_endpoints: __, ...rest }: JsonObject) => rest;
    expect(embedded.plugins.map(withoutDatastore)).toEqual(list.plugins.map(withoutDatastore));
    expect({ ...embedded, plugins: [] }).toEqual({ ...list, plugins: [] });
  });
});

describe("a node with the installed network list", () => {
  let site: PluginSite;
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    site = await openPluginSite("embedded");
    for (const name of [identity.product, "portmap", "bandwidth"]) {
      symlinkSync(builtProgram(name), site.host.view(join(BIN_DIRECTORY, name)));
    }
  });
  afterAll(() => site?.[Symbol.asyncDispose]());

  const rows = [
    { without: undefined, answer: /^pod /, rates: 2 },
    { without: "portmap", answer: /^refused$/, rates: 2 },
    { without: "bandwidth", answer: /^pod /, rates: 0 },
  ];
  for (const { without, answer, rates } of rows) {
    const title =
      without === undefined ? "maps ports and shapes" : `does all but ${without} when that section is removed`;
    testList(title, async () => {
      const network = startRuntime({
        conflist: { ...list, plugins: list.plugins.filter(({ type }) => type !== without).map(onThisSite) },
        pluginDirectory: BIN_DIRECTORY,
        run: site.host.run,
      });
      const { containerId, netns } = await site.makePod();
      const capabilities = {
        portMappings: [{ hostPort: 8080, containerPort: 80, protocol: "tcp" }],
        bandwidth: { ingressRate: 1e9, ingressBurst: 1e7, egressRate: 1e9, egressBurst: 1e7 },
      };
      const before = await site.left();
      await network.add({ containerId, netns, capabilities });
      using _server = serveTcp(site.host.view(netns), "pod", 80);
      expect(await askTcp(site.host.netns, "192.0.2.1", 8080)).toMatch(answer);
      const shapers = (await site.host.must(["tc", "qdisc", "show"])).match(/ tbf /g) ?? [];
      expect(shapers).toHaveLength(rates);

      const log = readFileSync(site.host.view(INSTALLED_LOG_FILE), "utf8");
      expect(log).toMatch(new RegExp(`\\[INFO\\].*: ADD done .*container="${containerId}"`));

      await network.check({ containerId, netns, capabilities });
      await network.del({ containerId, netns, capabilities });
      expect(await site.left()).toEqual(before);
    });
  }

  /** The datastore of the test instead of the default one. */
  const onThisSite = (entry: Entry): JsonObject => {
    if (entry.type !== identity.product) return entry;
    const { etcd_endpoints: _, ...rest } = entry;
    return { ...rest, ...site.config({ ipam: rest["ipam"] }) };
  };
});
