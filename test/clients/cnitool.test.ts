/** cnitool (real libcni) drives every network under test in every version it speaks. */
import { describe, expect } from "bun:test";
import { part } from "../parts/build.ts";
import { type CnitoolCommand, runCnitool } from "../support/cnitool.ts";
import { type Host, hostProblem, openHost } from "../support/host.ts";
import { testNeeding } from "../support/needs.ts";
import { installNetwork } from "../support/network-under-test.ts";
import { expectTraces, tracesOf } from "../support/traces.ts";
import { networksUnderTest } from "./networks.ts";

const cnitool = hostProblem() === undefined ? await part("cnitool") : { missing: "cnitool is not built" };
const program = "path" in cnitool ? cnitool.path : "";
const testCnitool = testNeeding(hostProblem(), "missing" in cnitool ? cnitool.missing : undefined);

const rows = (await networksUnderTest()).flatMap((network) =>
  network.versions.map((version) => ({ network, version, title: network.title })),
);

describe.each(rows)("cnitool on $title in version $version", ({ network, version }) => {
  const canCheck = version >= "0.4.0";

  testCnitool("adds, checks and deletes an attachment, the last one twice, and leaves nothing", async () => {
    await using host = await openHost();
    await installNetwork(host, network, version);
    const before = await tracesOf(host, network);
    const netns = await makePod(host);
    const call = async (command: CnitoolCommand) => {
      const { code, stdout, stderr } = await runCnitool(host, program, [command, network.name, netns], CAPABILITIES);
      return code === 0 ? stdout : `failed with ${code}: ${stderr}`;
    };

    const result = JSON.parse(await call("add"));
    expect(result.cniVersion).toBe(version);
    expect(result.ips).toHaveLength(network.addressPrefixes.length);
    if (canCheck) {
      expect(await call("check")).toBe("");
      await host.must(["nsenter", `--net=${netns}`, "ip", "addr", "flush", "dev", "eth0", "scope", "global"]);
      expect(await call("check")).toStartWith("failed");
    }

    expect([await call("del"), await call("del")]).toEqual(["", ""]);
    await host.must(["ip", "netns", "delete", "vt-pod"]);
    await expectTraces(host, network, before);
  });
});

const CAPABILITIES = {
  capabilities: {
    portMappings: [{ hostPort: 8077, containerPort: 80, protocol: "tcp" }],
    bandwidth: { ingressRate: 10_000_000, ingressBurst: 1_000_000, egressRate: 10_000_000, egressBurst: 1_000_000 },
  },
};

async function makePod(host: Host): Promise<string> {
  await host.must(["ip", "netns", "add", "vt-pod"]);
  await host.must(["ip", "-n", "vt-pod", "link", "set", "lo", "up"]);
  return "/run/netns/vt-pod";
}
