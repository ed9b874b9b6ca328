/** The admin tool on real datastores: the built executable, next to the built IPAM plugin, as an administrator uses them. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { API_VERSION, identity } from "../../src/identity.ts";
import { type Certificate, makeRoot, makeSigned } from "../support/certificates.ts";
import { type EtcdCluster, hasEtcd, startEtcd } from "../support/etcd.ts";
import { builtProgram, type PluginRun, runPlugin } from "../support/run-plugin.ts";
import { type TemporaryDirectory, temporaryDirectory } from "../support/temporary-directory.ts";

const TOOL = builtProgram(identity.adminTool);

interface Site {
  /** Selects the datastore, for the admin tool. */
  readonly env: Readonly<Record<string, string>>;
  /** The same, for a network config. */
  readonly config: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

async function startEmbedded(): Promise<Site> {
  const directory = temporaryDirectory("admin-store");
  const path = join(directory.path, "store.db");
  return {
    env: { DATASTORE_TYPE: "embedded", DATASTORE_PATH: path },
    config: { datastore_type: "embedded", datastore_path: path },
    stop: async () => directory.remove(),
  };
}

async function startBareEtcd(): Promise<Site> {
  const etcd = await startEtcd();
  const endpoints = etcd.endpoints.join(",");
  return { env: { ETCD_ENDPOINTS: endpoints }, config: { etcd_endpoints: endpoints }, stop: () => etcd.stop() };
}

const SITES = [
  ["embedded", undefined, startEmbedded],
  ["etcd", hasEtcd ? undefined : "no etcd", startBareEtcd],
] as const;

function pool(name: string, cidr: string): object {
  return { apiVersion: API_VERSION, kind: "IPPool", metadata: { name }, spec: { cidr } };
}

for (const [name, missing, start] of SITES) {
  describe.skipIf(missing !== undefined)(`the admin tool on ${name}${missing ? ` (skipped: ${missing})` : ""}`, () => {
    let site: Site;
    let directory: TemporaryDirectory;
    beforeAll(async () => {
      directory = temporaryDirectory("admin-site");
      site = await start();
    });
    afterAll(async () => {
      await site.stop();
      directory.remove();
    });

    const ctl = (words: string, stdin?: unknown): Promise<PluginRun> =>
      runPlugin(TOOL, { args: words.split(" "), env: site.env, stdin });
    // biome-ignore lint/suspicious/noExplicitAny: what a script would read
    const json = async (words: string): Promise<any> => JSON.parse((await ctl(`${words} -o json`)).stdout);
    const must = async (words: string, stdin?: unknown): Promise<string> => {
      const run = await ctl(words, stdin);
      if (run.exitCode !== 0) throw new Error(`${words}: ${run.stdout}${run.stderr}`);
      return run.stdout;
    };
    const plugin = (command: string, container: string): Promise<PluginRun> =>
      runPlugin(builtProgram(identity.ipamType), {
        env: {
          CNI_COMMAND: command,
          CNI_CONTAINERID: container,
          CNI_IFNAME: "eth0",
          [`${identity.environmentPrefix}RUN_DIRECTORY`]: directory.path,
        },
        stdin: {
          cniVersion: "1.1.0",
          name: "net",
          type: identity.product,
          nodename: "node-1",
          ipam: { type: identity.ipamType },
          ...site.config,
        },
      });

    test("initializes an empty datastore, which then passes the check", async () => {
      expect((await ctl("datastore check")).exitCode).toBe(1);
      expect(await must("datastore init")).toStartWith("Initialized the datastore (cluster ");
      expect(await must("datastore init")).toStartWith("The datastore is already initialized (cluster ");
      expect(await json("datastore check")).toMatchObject({ ok: true });
    });

    test("stores resources, and the plugin uses them", async () => {
      expect(await must("apply -f -", pool("blue", "10.77.0.0/24"))).toBe("ippool/blue created\n");
      expect(await must("get pools -o name")).toBe("ippool/blue\n");
      const added = await plugin("ADD", "c1");
      const [{ address }] = JSON.parse(added.stdout).ips;
      const ip = address.split("/")[0];

      expect(await json(`ipam show --ip ${ip}`)).toMatchObject({ handle: "net.c1", node: "node-1", pool: "blue" });
      expect(await json("ipam show")).toMatchObject({ pools: [{ pool: "blue", size: 256, used: 1 }] });
      expect(await json("ipam check")).toMatchObject({ ok: true, findings: [] });
    });

    test("refuses a resource that is too large, with its name and the limit, and continues with the others", async () => {
      const large = (node: string, bytes: number) => ({
        apiVersion: API_VERSION,
        kind: "Node",
        metadata: { name: node, annotations: { note: "x".repeat(bytes) } },
      });
      const items = [large("large", 1_600_000), large("larger", 3_000_000), large("small", 10)];
      const { exitCode, stdout, stderr } = await ctl("apply -f -", { kind: "List", items });
      await ctl("delete node large larger small --ignore-not-found");

      if (name === "embedded") {
        expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
        return;
      }
      expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "node/small created\n" });
      // On a busy machine etcd may take so long for them that the tool says that it waits.
      const errors = stderr
        .trim()
        .split("\n")
        .filter((line) => !line.includes("does not answer; waiting"));
      expect(errors).toEqual([
        expect.stringMatching(
          /Cannot write node\/large: it is too large.*1600\d{3} bytes.*1\.5 MiB.*max-request-bytes/,
        ),
        expect.stringMatching(
          /Cannot write node\/larger: it is too large.*3000\d{3} bytes.*1\.5 MiB.*max-request-bytes/,
        ),
      ]);
    });

    test("does not delete a pool until its addresses are no longer in use", async () => {
      const refused = await ctl("delete pool blue");

      expect(refused.exitCode).toBe(1);
      expect(refused.stderr).toContain("net.c1");
      expect((await json("get pool blue")).spec.disabled).toBe(false);
      await must("ipam release --handle net.c1");
      await must("delete pool blue");
      expect((await plugin("DEL", "c1")).exitCode).toBe(0);
      expect(await json("ipam check")).toMatchObject({ ok: true, counts: { blocks: 0, handles: 0 } });
    });

    test("divides a pool under a lock, draws its parts, and takes a report", async () => {
      const lock = (isLocked: boolean) =>
        must(`patch clusterinfo default -t json -p [{"op":"add","path":"/spec/datastoreReady","value":${!isLocked}}]`);
      const report = join(directory.path, "report.json");
      await must("apply -f -", pool("green", "10.78.0.0/24"));
      const [{ address }] = JSON.parse((await plugin("ADD", "c2")).stdout).ips;
      expect((await ctl("ipam split 4 --name green")).stderr).toContain("not locked");
      await lock(true);
      expect(JSON.parse((await plugin("ADD", "c3")).stdout).code).toBe(11);
      expect(await must("ipam split 4 --name green")).toContain("ippool/split-green-3 10.78.0.192/26");
      await must(`ipam check --report ${report}`);
      expect(await must(`ipam release --from-report ${report}`)).toBe("Nothing to release: nothing is leaked\n");
      await lock(false);
      expect((await ctl(`ipam release --from-report ${report}`)).stderr).toContain("older than");

      expect(await json(`ipam show --ip ${address.split("/")[0]}`)).toMatchObject({ handle: "net.c2" });
      expect((await plugin("ADD", "c3")).exitCode).toBe(0);
      expect(await must("ipam show --map --pool split-green-0")).toContain("split-green-0: 10.78.0.0/26, ");
      expect(await json("ipam check")).toMatchObject({ ok: true, counts: { pools: 4, addresses: 2 } });
      for (const container of ["c2", "c3"]) expect((await plugin("DEL", container)).exitCode).toBe(0);
      await must("delete pools --all");
    });

    test("releases the blocks of a deleted node; those in use rest after their last address, and go with their pool", async () => {
      await must("apply -f -", pool("green", "10.78.0.0/24"));
      await must("apply -f -", { apiVersion: API_VERSION, kind: "Node", metadata: { name: "node-1" } });
      expect((await plugin("ADD", "c2")).exitCode).toBe(0);

      expect(await ctl("delete node node-1")).toMatchObject({
        exitCode: 1,
        stderr: expect.stringContaining('"net.c2"'),
      });
      expect(await ctl("delete node node-1 --force")).toMatchObject({
        exitCode: 0,
        stderr: expect.stringContaining("1 block was"),
      });
      expect(await json("ipam check")).toMatchObject({ ok: true, counts: { blocks: 1, handles: 1 } });
      expect((await ctl("delete node node-1")).exitCode).toBe(1);
      expect((await plugin("DEL", "c2")).exitCode).toBe(0);
      expect(await json("ipam check")).toMatchObject({ ok: true, counts: { blocks: 1, handles: 0 } });
      await must("delete pool green");
      expect(await json("ipam check")).toMatchObject({ ok: true, counts: { blocks: 0, handles: 0 } });
    });

    test("fixes what endpoints and allocations contradict each other in, or names the command that does", async () => {
      const endpoint = (container: string, ...addresses: readonly string[]) => ({
        apiVersion: API_VERSION,
        kind: "WorkloadEndpoint",
        metadata: { name: `node--1-cni-${container}-eth0`, namespace: "default" },
        spec: {
          orchestrator: "cni",
          node: "node-1",
          containerID: container,
          endpoint: "eth0",
          profiles: ["net"],
          ipNetworks: addresses.map((each) => `${each}/32`),
        },
      });
      const fix = async () => (await json("ipam check --fix")).findings;
      await must("apply -f -", pool("violet", "10.79.0.0/24"));
      await must("apply -f -", endpoint("c3", "10.79.0.7"));
      expect(await fix()).toMatchObject([{ kind: "endpoint-without-allocation", fixed: true }]);
      expect(await json("ipam show --ip 10.79.0.7")).toMatchObject({ state: "in use", handle: "net.c3" });

      await must("apply -f -", endpoint("c4", "10.79.0.7"));
      const [twice] = await fix();
      expect(twice).toMatchObject({ kind: "address-twice", fixed: false });
      const command = /"\S+ (delete [^"]*)"/.exec(twice.remedy)?.[1] ?? "";
      expect(command).toContain("c4");
      await must(command);
      expect(await json("ipam check")).toMatchObject({ ok: true });

      await must("delete pool violet --force");
      const [outside] = await fix();
      expect(outside).toMatchObject({ kind: "allocation-outside-pools", fixed: false });
      const [, manifest = "{}", create = ""] = /echo '(.*)' \| \S+ (.*)$/.exec(outside.remedy) ?? [];
      await must(create, JSON.parse(manifest));
      expect(await json("ipam check")).toMatchObject({ ok: true });
      expect((await plugin("DEL", "c3")).exitCode).toBe(0);
      await must("delete workloadendpoint node--1-cni-c3-eth0");
      await must(`delete pool ${JSON.parse(manifest).metadata.name}`);
      expect(await json("ipam check")).toMatchObject({ ok: true, counts: { blocks: 0, handles: 0 } });
    });

    test("concurrent changes are all kept", async () => {
      await must("apply -f -", { apiVersion: API_VERSION, kind: "Node", metadata: { name: "n1" } });
      const keys = Array.from({ length: 4 }, (_, index) => `k${index}`);
      await Promise.all(keys.map((key) => must(`label node n1 ${key}=x`)));

      expect(Object.keys((await json("get node n1")).metadata.labels).sort()).toEqual(keys);
    });

    test("of two overlapping pools created concurrently at most one stays", async () => {
      await Promise.all([
        ctl("create -f -", pool("left", "10.88.0.0/24")),
        ctl("create -f -", pool("right", "10.88.0.0/16")),
      ]);

      expect((await json("get pools")).items.length).toBeLessThanOrEqual(1);
    });

    test("reads its settings from a file", async () => {
      const file = join(directory.path, "settings.yaml");
      const { DATASTORE_TYPE: datastoreType, DATASTORE_PATH: datastorePath, ETCD_ENDPOINTS: etcdEndpoints } = site.env;
      await Bun.write(file, JSON.stringify({ spec: { datastoreType, datastorePath, etcdEndpoints } }));
      const run = await runPlugin(TOOL, { args: ["get", "node", "n1", "-o", "name", "--config", file] });

      expect(run).toEqual({ exitCode: 0, stdout: "node/n1\n", stderr: "" });
    });
  });
}

describe.skipIf(!hasEtcd)(`datastore check on etcd with TLS${hasEtcd ? "" : " (skipped: no etcd)"}`, () => {
  let directory: TemporaryDirectory;
  let etcd: EtcdCluster;
  let root: Certificate;
  let foreign: Certificate;
  let client: Certificate;
  beforeAll(async () => {
    directory = temporaryDirectory("admin-tls");
    root = makeRoot(directory.path, "root");
    foreign = makeRoot(directory.path, "foreign");
    client = makeSigned(directory.path, "client", root);
    etcd = await startEtcd({ tls: { ...makeSigned(directory.path, "server", root), clientCa: root.cert } });
  });
  afterAll(async () => {
    await etcd.stop();
    directory.remove();
  });

  async function lastStage(...flags: readonly string[]): Promise<string> {
    const args = ["datastore", "check", "-o", "json", "--etcd-endpoints", etcd.endpoints.join(","), ...flags];
    const { stdout } = await runPlugin(TOOL, { args });
    return JSON.parse(stdout).stages.at(-1).stage;
  }

  test("reports the stage that fails, and passes with the right files", async () => {
    const own = ["--etcd-cert-file", client.cert, "--etcd-key-file", client.key];

    expect(await lastStage("--etcd-ca-cert-file", foreign.cert, ...own)).toBe("TLS");
    expect(await lastStage("--etcd-ca-cert-file", `${directory.path}/absent.pem`, ...own)).toBe("files");
    expect(await lastStage("--etcd-ca-cert-file", root.cert, ...own)).toBe("ready");
  });

  test("takes certificates that are in the configuration file themselves", async () => {
    const file = `${directory.path}/settings.json`;
    const pem = (path: string) => readFileSync(path, "utf8");
    const spec = { etcdCACert: pem(root.cert), etcdCert: pem(client.cert), etcdKey: pem(client.key) };
    writeFileSync(file, JSON.stringify({ apiVersion: API_VERSION, kind: "Settings", spec }));

    expect(await lastStage("-c", file)).toBe("ready");
    writeFileSync(file, JSON.stringify({ spec: { ...spec, etcdCACert: pem(foreign.cert) } }));
    expect(await lastStage("-c", file)).toBe("TLS");
  });
});
