import { describe, expect, test } from "bun:test";
import type { AdminSurroundings } from "../../../test/support/admin-context.ts";
import { runInside } from "../../../test/support/admin-context.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import { CONTAINER_ORCHESTRATOR } from "../../model/container-labels.ts";
import { NETWORK_ANNOTATION } from "../../model/endpoint-labels.ts";
import { ENDPOINT, NODE, POOL, PROFILE } from "../../model/kinds.ts";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";

const FOLDER = "/etc/cni/net.d";
const FILE = `${FOLDER}/80-web.conflist`;

interface Host extends AdminSurroundings {
  readonly files: Record<string, string>;
  readonly store: ReturnType<typeof openMemory>;
}

/** A host whose files are a table that commands change. */
function openHost(files: Record<string, string> = {}): Host {
  return {
    files,
    store: openMemory(),
    replaceFile: async (path, text) => {
      files[path] = text;
      return true;
    },
    removeFile: async (path) => delete files[path],
  };
}

async function run(host: Host, line: string) {
  return runInside(line.split(" "), host);
}

async function names(host: Host): Promise<readonly string[]> {
  const kinds = [POOL, PROFILE];
  const entries = await Promise.all(kinds.map((kind) => readAllEntries(host.store, kind.prefix())));
  return entries.flat().map(({ key }) => key.slice(key.lastIndexOf("/") + 1));
}

function plugins(host: Host, file = FILE) {
  return JSON.parse(host.files[file] ?? "{}").plugins;
}

describe("network create", () => {
  test("makes pools, profile and network list, on a host that has none yet", async () => {
    const host = openHost();
    const { code, stdout, stderr } = await run(
      host,
      "network create web --subnet 10.66.0.0/24 --subnet fd00:66::/64 --isolate --rate 10M --label role=db",
    );

    expect([code, stderr]).toEqual([0, expect.stringContaining("nothing isolates them yet")]);
    expect(stdout.split("\n").slice(0, -1)).toEqual([
      "ippool/web created",
      "ippool/web-ipv6 created",
      "profile/web created",
      `network web created: ${FILE}`,
    ]);
    const [own, portmap, bandwidth] = plugins(host);
    expect(own).toMatchObject({
      ...{ type: "vendor", datastore_type: "embedded", labels: { role: "db" } },
      ipam: {
        ...{ type: "vendor-ipam", assign_ipv4: "true", ipv4_pools: ["web"] },
        ...{ assign_ipv6: "true", ipv6_pools: ["web-ipv6"] },
      },
      capabilities: { ips: true, mac: true },
      policy: { type: "k8s" },
    });
    expect(portmap.type).toBe("portmap");
    expect(bandwidth).toMatchObject({ type: "bandwidth", ingressRate: 10_000_000, egressRate: 10_000_000 });
    const shown = JSON.parse((await run(host, "network show web -o json")).stdout);
    expect(shown.networks).toEqual([
      {
        ...{ name: "web", file: FILE, isIsolated: true, containers: [] },
        pools: [
          { name: "web", cidr: "10.66.0.0/24" },
          { name: "web-ipv6", cidr: "fd00:66::/64" },
        ],
      },
    ]);
    expect(await readAllEntries(host.store, NODE.prefix())).toHaveLength(1);
  });

  test("takes what is of the host from its first network: datastore, log and chained plugins", async () => {
    const base = {
      ...{ name: "pods", cniVersion: "0.4.0" },
      plugins: [
        {
          ...{ type: "vendor", datastore_type: "embedded", datastore_path: "/data/own", log_level: "DEBUG" },
          ...{ labels: { role: "web" }, ipam: { type: "vendor-ipam", ipv4_pools: ["pods"] } },
        },
        { type: "bandwidth", ingressRate: 1000, ingressBurst: 1000, capabilities: { bandwidth: true } },
      ],
    };
    const host = openHost({ [`${FOLDER}/10-pods.conflist`]: JSON.stringify(base) });
    await run(host, "network create web");

    expect(plugins(host)).toEqual([
      {
        type: "vendor",
        datastore_type: "embedded",
        datastore_path: "/data/own",
        log_level: "DEBUG",
        ipam: { type: "vendor-ipam" },
      },
      { type: "bandwidth", capabilities: { bandwidth: true } },
    ]);
    await run(host, "network create slow --rate 5M");
    expect(plugins(host, `${FOLDER}/80-slow.conflist`)[1]).toMatchObject({ ingressRate: 5_000_000 });
  });

  test("uses pools that exist, and leaves them when it is deleted", async () => {
    const host = openHost();
    await run(host, "network create web --subnet 10.66.0.0/24");
    await run(host, "network create other --pool web");

    expect(plugins(host, `${FOLDER}/80-other.conflist`)[0].ipam).toMatchObject({ ipv4_pools: ["web"] });
    await run(host, "network delete other");
    expect(await names(host)).toEqual(["web"]);
  });

  test.each([
    ["web --subnet 10.66.0.7/24", 2, "the subnet of this address is 10.66.0.0/24"],
    ["web --subnet ten", 2, "use a subnet such as"],
    ["web --subnet 10.1.0.0/24 --subnet 10.2.0.0/24", 2, "is a second one of IPv4"],
    ["Web", 2, "use lower-case letters"],
    ["../web", 2, "cannot be the name of a network"],
    ["web --rate fast", 1, "it is not a quantity"],
    ["web --pool none", 1, 'Cannot use pool "none": it does not exist'],
    ["web --label role", 2, '"role" is not a valid label'],
    ["", 2, "The name of the network is required"],
  ])("refuses %j and leaves nothing", async (line, code, message) => {
    const host = openHost();
    const result = await run(host, `network create ${line}`.trim());

    expect([result.code, result.stderr]).toEqual([code, expect.stringContaining(message)]);
    expect([host.files, await names(host)]).toEqual([{}, []]);
  });

  test("refuses a name that a network of this host has, and subnets that overlap, and leaves nothing", async () => {
    const host = openHost();
    await run(host, "network create web --subnet 10.66.0.0/24");
    const again = await run(host, "network create web --subnet 10.67.0.0/24");
    const overlapping = await run(host, "network create near --subnet fd00::/64 --subnet 10.66.0.0/16");

    expect(again.stderr).toContain(`Cannot create network "web": "${FILE}" is one`);
    expect([overlapping.code, overlapping.stderr]).toEqual([1, expect.stringContaining("overlaps")]);
    expect(await names(host)).toEqual(["web"]);
  });

  test("takes back what it made if the network list cannot be written", async () => {
    const host = openHost();
    const failing = { ...host, replaceFile: () => Promise.reject(new Error("the disk is full")) };
    const { code } = await runInside("network create web --subnet 10.66.0.0/24 --isolate".split(" "), failing);

    expect(code).not.toBe(0);
    expect(await names(host)).toEqual([]);
  });

  test("refuses a host whose datastore is the Kubernetes API", async () => {
    const base = {
      ...{ name: "pods", cniVersion: "1.0.0" },
      plugins: [
        {
          type: "vendor",
          datastore_type: "kubernetes",
          kubernetes: { kubeconfig: "/k" },
          ipam: { type: "vendor-ipam" },
        },
      ],
    };
    const host = openHost({ [`${FOLDER}/10-pods.conflist`]: JSON.stringify(base) });

    expect((await run(host, "network create web")).stderr).toContain("its datastore is the Kubernetes API");
  });
});

describe("network delete", () => {
  test("removes pools, profile and file, and refuses while containers are connected", async () => {
    const host = openHost();
    await run(host, "network create web --subnet 10.66.0.0/24 --isolate");
    const name = "this--host-cni-c1-eth0";
    const metadata = { name, namespace: "default", annotations: { [NETWORK_ANNOTATION]: "web" } };
    const spec = {
      ...{ orchestrator: CONTAINER_ORCHESTRATOR, workload: "db", node: "this-host", containerID: "c1" },
      ...{ endpoint: "eth0", interfaceName: "vend1", ipNetworks: ["10.66.0.1/32"], profiles: ["web"] },
    };
    const key = ENDPOINT.key({ name, namespace: "default" });
    const endpoint = workloadEndpoint.make(metadata, spec);
    await host.store.commit([{ kind: "create", key, value: workloadEndpoint.write(endpoint) }]);

    const refused = await run(host, "network delete web");
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("containers are connected to it: db")]);
    expect((await run(host, "network list")).stdout).toMatch(/^web +web \(10\.66\.0\.0\/24\) +yes +1 /m);

    const [entry] = (await host.store.read([{ kind: "key", key }])).answers.flat();
    await host.store.commit([{ kind: "delete", key, revision: entry?.revision ?? "" }]);
    expect((await run(host, "network delete web")).stdout).toBe(
      "ippool/web deleted\nprofile/web deleted\nnetwork web deleted\n",
    );
    expect([host.files, await names(host)]).toEqual([{}, []]);
    expect((await run(host, "network delete web")).stderr).toContain('Cannot find network "web" on this host');
  });
});
