/** Requests of ADD and DEL to etcd, counted by etcd itself; and the options of the executable. */

import { afterAll, beforeAll, describe, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { identity } from "../../src/identity.ts";
import { VERSION } from "../../src/version.ts";
import { fetchFromHost } from "../support/connectivity.ts";
import { hasEtcd } from "../support/etcd.ts";
import { hostProblem } from "../support/host.ts";
import { testNeeding } from "../support/needs.ts";
import { failureOf, openPluginSite, type PluginSite, readyCluster } from "../support/plugin-site.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { NOTHING_UNUSUAL } from "../support/stderr.ts";

const test = testNeeding(hostProblem(), hasEtcd ? undefined : "needs the program etcd");

describe("plugin on etcd", () => {
  let site: PluginSite;
  beforeAll(async () => {
    if (hostProblem() === undefined && hasEtcd) site = await openPluginSite("etcd");
  });
  afterAll(() => site?.[Symbol.asyncDispose]());

  const asked = async () => {
    const metrics = await fetchFromHost(site.host, "127.0.0.1", 2379, "/metrics");
    const counts = metrics.matchAll(/^grpc_server_handled_total\{.*?grpc_service="etcdserverpb.KV".*?\} (\d+)$/gm);
    return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
  };
  const costOf = async (work: () => Promise<unknown>) => {
    const before = await asked();
    await work();
    return (await asked()) - before;
  };

  test("makes two requests for an ADD of both families, two for a DEL, and one if nothing is left", async () => {
    const [first, second] = [await site.makePod(), await site.makePod()];
    await site.add(first);

    expect(await costOf(() => site.add(second))).toBe(2);
    expect(await costOf(() => site.quietly("DEL", second))).toBe(2);
    expect(await costOf(() => site.quietly("DEL", second))).toBe(1);
    await site.quietly("DEL", first);
    expect(await site.left()).toEqual([]);
  });

  test("tests with -t whether it can be used", async () => {
    const run = (more: object) =>
      site.host.run([builtProgram(), "-t"], { stdin: JSON.stringify({ ...site.config(), ...more }) });

    expect(await run({})).toMatchObject({ code: 0, stdout: "" });
    expect(await run({ cniVersion: "0.3.1" })).toMatchObject({ code: 0, stdout: "" });
    await site.store.put([readyCluster(false)]);
    expect(failureOf(await run({})).code).toBe(11);
    await site.store.put([readyCluster()]);
    expect(failureOf(await run({ etcd_endpoints: "http://127.0.0.1:9" })).code).toBe(103);
    expect(failureOf(await run({ log_level: "LOUD" })).code).toBe(7);
    expect(failureOf(await site.host.run([builtProgram(), "-t"], { stdin: "{" })).code).toBe(6);
  });

  test("prints its version, and ignores stray arguments", async () => {
    expect(await site.host.must([builtProgram(), "-v"])).toBe(`${identity.product} ${VERSION}\n`);
    const environment = { CNI_COMMAND: "VERSION" };
    expect(JSON.parse(await site.host.must([builtProgram(), "stray", "{}"], { environment }))).toHaveProperty(
      "supportedVersions",
    );
  });

  test("prints where the time goes, in one line, if requested", async () => {
    const pod = await site.makePod();
    const environment = { [`${identity.environmentPrefix}TRACE`]: "1" };
    const { stderr } = await site.call("ADD", pod, { environment });

    expect(stderr).toMatch(
      /^.*\[INFO\].* ADD done .*\ntrace ADD: boot [\d.]+, decode [\d.]+, datastore [\d.]+, kernel [\d.]+, exit [\d.]+, all [\d.]+ ms\n$/,
    );
    expect((await site.call("DEL", pod)).stderr).toEqual(NOTHING_UNUSUAL);
  });

  test("logs warnings about the config, and unknown keys only at log level DEBUG", async () => {
    const pod = await site.makePod();
    const path = "/var/log/vt/cni.log";
    const config = (log_level: string) =>
      site.config({ etcd_scheme: "http", unknown_key: 1, log_file_path: path, log_level });
    await site.add(pod, { config: config("INFO") });
    const log = () => readFileSync(site.host.view(path), "utf8");

    expect(log()).toContain("[WARNING]");
    expect(log()).toContain("deprecated");
    expect(log()).not.toContain("unknown_key");
    await site.quietly("DEL", pod, { config: config("DEBUG") });
    expect(log()).toContain("unknown_key");
  });
});
