/** cnitool (real libcni) uses every network under test in the versions it supports. */
import { describe, expect } from "bun:test";
import { part } from "../parts/build.ts";
import { type CnitoolCommand, runCnitool } from "../support/cnitool.ts";
import { type Host, hostProblem, openHost } from "../support/host.ts";
import { testNeeding } from "../support/needs.ts";
import { installNetwork, type NetworkUnderTest } from "../support/network-under-test.ts";
import { proofSize } from "../support/proof-size.ts";
import { expectTraces, tracesOf } from "../support/traces.ts";
import { networksUnderTest } from "./networks.ts";

const cnitool = hostProblem() === undefined ? await part("cnitool") : { missing: "cnitool is not built" };
const program = "path" in cnitool ? cnitool.path : "";

interface Row {
  readonly network: NetworkUnderTest;
  readonly version: string;
}

const NETNS = "/run/netns/vt-pod";

const networks = await networksUnderTest();
/** In `make test` the first network shows every version, the others show the newest. */
const rows = networks.flatMap((network, index) =>
  proofSize({ everyDay: index === 0 ? network.versions : network.versions.slice(-1), soak: network.versions }).map(
    (version): Row => ({ network, version }),
  ),
);

/** Runs cnitool for an attachment; returns what it printed, or how it failed. */
async function openPod({ network, version }: Row, host: Host) {
  await installNetwork(host, network, version);
  const before = await tracesOf(host, network);
  await host.must(["ip", "netns", "add", "vt-pod"]);
  const call = async (command: CnitoolCommand) => {
    const { code, stdout, stderr } = await runCnitool(host, program, [command, network.name, NETNS], CAPABILITIES);
    return code === 0 ? stdout : `failed with ${code}: ${stderr}`;
  };
  const close = async () => {
    await host.must(["ip", "netns", "delete", "vt-pod"]);
    await expectTraces(host, network, before);
  };
  return { call, close };
}

// Each has its own host, and upstream's plugin waits most of the time.
describe.concurrent("cnitool", () => {
  for (const row of rows) {
    const missing = [hostProblem(), "missing" in cnitool ? cnitool.missing : undefined, row.network.missing];
    const testCnitool = testNeeding(...missing);
    const place = `on ${row.network.title} in version ${row.version}`;

    testCnitool(`adds and deletes, the latter twice, and leaves nothing ${place}`, async () => {
      await using host = await openHost();
      const { call, close } = await openPod(row, host);
      const result = JSON.parse(await call("add"));

      expect(result.cniVersion).toBe(row.version);
      // Before 0.3.0 a result has one address per family.
      expect(result.ips ?? [result.ip4, result.ip6]).toHaveLength(row.network.addressPrefixes.length);
      if (row.version >= "0.4.0") await expectCheckToCheck(host, call);
      expect([await call("del"), await call("del")]).toEqual(["", ""]);
      await close();
    });

    if (row.version < "1.1.0") continue;
    testCnitool(`reports the status, and its gc removes everything ${place}`, async () => {
      await using host = await openHost();
      const { call, close } = await openPod(row, host);
      await call("add");

      expect([await call("status"), await call("gc")]).toEqual(["", ""]);
      await close();
    });
  }
});

describe("cnitool with a network", () => {
  testNeeding(hostProblem(), "missing" in cnitool ? cnitool.missing : undefined)(
    "whose name CNI does not allow refuses it itself, and starts no plugin",
    async () => {
      await using host = await openHost();
      await host.must(["ip", "netns", "add", "vt-pod"]);
      host.writeFile("/opt/cni/bin/witness", "#!/bin/sh\necho started >>/run/witness\n");
      await host.must(["chmod", "+x", "/opt/cni/bin/witness"]);
      const add = async (name: string) => {
        const list = { cniVersion: "1.0.0", name, plugins: [{ type: "witness" }] };
        host.writeFile("/etc/cni/net.d/10-witness.conflist", JSON.stringify(list));
        const { stderr } = await runCnitool(host, program, ["add", name, NETNS]);
        return { complaint: stderr, isStarted: (await host.run(["cat", "/run/witness"])).code === 0 };
      };

      const complaint = expect.stringContaining("invalid characters found in network name");
      for (const name of ["my network!", "a/b"]) expect(await add(name)).toEqual({ complaint, isStarted: false });
      expect(await add("my-network")).toMatchObject({ isStarted: true });
    },
  );
});

async function expectCheckToCheck(host: Host, call: (command: CnitoolCommand) => Promise<string>): Promise<void> {
  expect(await call("check")).toBe("");
  await host.must(["nsenter", `--net=${NETNS}`, "ip", "addr", "flush", "dev", "eth0", "scope", "global"]);
  expect(await call("check")).toStartWith("failed");
}

const CAPABILITIES = {
  capabilities: {
    portMappings: [{ hostPort: 8077, containerPort: 80, protocol: "tcp" }],
    bandwidth: { ingressRate: 10_000_000, ingressBurst: 1_000_000, egressRate: 10_000_000, egressBurst: 1_000_000 },
  },
};
