/** Runs the commands of the README, on a private host. */
import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import { formatProblem } from "../../src/model/problem.ts";
import { completeInstallation } from "../../src/release/installation/complete.ts";
import type { KubeObject } from "../../src/release/kube-object.ts";
import { startAgent } from "../agent/agent.ts";
import { hasEtcd } from "../support/etcd.ts";
import { startEtcdOnHost } from "../support/etcd-on-host.ts";
import { hostProblem, openHost } from "../support/host.ts";
import { program, root, testNeeding } from "../support/needs.ts";
import { startRuntime } from "../support/runtime-driver.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const directory = temporaryDirectory("readme");
afterAll(() => directory.remove());

const REPOSITORY = join(import.meta.dir, "../..");
const page = readFileSync(join(REPOSITORY, "README.md"), "utf8");
/** Those of the commands that are not typed here: what they do is there already, or started by the test itself. */
const BY_HAND = /^(make|systemctl) .*$/gm;
const [forAnyUser = "", forRoot = ""] = scriptsOf("Try it");
const [install = ""] = scriptsOf("Install it on a node");
const [onCluster = ""] = scriptsOf("On a cluster");

function scriptsOf(title: string): readonly string[] {
  const section = page.split(/^## /m).find((each) => each.startsWith(`${title}\n`)) ?? "";
  return scriptsIn(section);
}

/** Without those that have only commands that are not typed. /tmp is shared. */
function scriptsIn(text: string): readonly string[] {
  return [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)]
    .map(([, script = ""]) => script.replace(BY_HAND, "").replaceAll("/tmp/", `${directory.path}/`))
    .filter((script) => script.trim() !== "");
}

interface Place {
  /** Prefix of the command. */
  readonly enter?: readonly string[];
  /** The script's `$0`. */
  readonly name?: string;
}

function type(script: string, { enter = [], name = "bash" }: Place = {}): { code: number; printed: string } {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...enter, "bash", "-c", script, name], {
    env: { PATH: process.env["PATH"] ?? "" },
    stdin: "ignore",
  });
  return { code: exitCode, printed: `${stdout}${stderr}` };
}

/** Its own host name, network and /run; one address, so that ping has a source address. */
const PRIVATE_HOST = `set -e
echo "$0" >/proc/sys/kernel/hostname
mount --make-rprivate / && mount -t tmpfs none /run
ip link set lo up && ip address add 192.0.2.1/32 dev lo
`;
const NOTHING_LEFT = `echo "what is left:"; nft list tables; find /run -name '*${identity.product}*'; ip -o link show type veth
echo "end of what is left"
`;
/** A node chooses its first block, and with it the first address, by its name. */
const HOST_NAMES = ["vm", "debian", "localhost", "Node-7.example.org", "a"];

describe("the commands in the README", () => {
  test("print versions, an error, and the check of a config with and without a mistake", () => {
    const { code, printed } = type(forAnyUser);

    expect(code).toBe(0);
    expect(printed).toContain('"supportedVersions"');
    expect(printed).toMatch(/"code":4.*\nexit code 1/);
    expect(printed).toMatch(/try\.conf:1:\d+: error: "log_level"/);
    expect(printed).toContain("try.conf: ok");
    expect(printed).toContain('"num_queues": 1');
  });

  testNeeding(
    root,
    program("ip"),
    program("ping"),
    program("nft"),
  )("connect a container that answers a ping, whatever the name of the host, and leave nothing on it", () => {
    const addresses = HOST_NAMES.map((name) => {
      const enter = ["unshare", "--net", "--mount", "--uts"];
      type(forAnyUser);
      const { code, printed } = type(`${PRIVATE_HOST}${forRoot}${NOTHING_LEFT}`, { enter, name });

      expect({ name, code, printed }).toMatchObject({ code: 0 });
      expect(printed).toContain(" 1 received");
      expect(printed).toContain("\nwhat is left:\nend of what is left\n");
      return /"address":"(10\.66\.0\.\d+)\/32"/.exec(printed)?.[1];
    });
    expect(addresses).not.toContain(undefined);
    expect(new Set(addresses).size).toBeGreaterThan(1);
  });

  testNeeding(hostProblem(), hasEtcd ? undefined : "needs the program etcd")(
    "install the network on a node, whose first ADD succeeds, and change its pool",
    async () => {
      await using host = await openHost();
      await host.must(["ip", "link", "set", "lo", "up"]);
      await startEtcdOnHost(host);
      await host.must(["mkdir", "-p", "/opt/cni"]);
      await host.must(["cp", "-a", join(REPOSITORY, "dist/bin"), "/opt/cni/"]);

      const installed = await host.must(["bash", "-ec", `cd ${REPOSITORY}; PATH=/opt/cni/bin:$PATH; ${install}`]);

      expect(installed).toContain("10-vendor.conflist: ok");
      await host.must(["ip", "netns", "add", "pod"]);
      const runtime = startRuntime({
        conflist: JSON.parse(readFileSync(host.view("/etc/cni/net.d/10-vendor.conflist"), "utf8")),
        pluginDirectory: "/opt/cni/bin",
        run: host.run,
      });
      const { ips } = await runtime.add({ containerId: "pod", netns: "/var/run/netns/pod" });
      expect(ips.map(({ address }) => address)).toEqual([expect.stringMatching(/^10\.66\..*\/32$/)]);

      await startAgent(host);
      const printed = await host.must(["bash", "-ec", `PATH=/opt/cni/bin:$PATH; ${onCluster}`]);
      expect(printed).toContain("ippool/pods patched\n");
      expect(printed).toContain("Node agent: running\n");
    },
  );

  test("are all typed", () => {
    expect(scriptsIn(page)).toEqual([forAnyUser, forRoot, install, onCluster]);
  });

  test("come with an Installation that the operator accepts, and whose pool has the encapsulation that the table names", () => {
    const [, document = ""] = /^```yaml\n([\s\S]*?)^```$/m.exec(page) ?? [];
    const facts = { version: "3.29.0", namespace: "system", pools: [], platformPodCidrs: [] };
    const completed = completeInstallation({ default: Bun.YAML.parse(document) as KubeObject }, facts);

    expect(completed.ok ? [] : completed.problems.map(formatProblem)).toEqual([]);
    expect(completed.ok && completed.installation.network.ipPools.map(({ spec }) => spec)).toMatchObject([
      { cidr: "10.244.0.0/16", vxlanMode: "Always" },
    ]);
    expect(page).toContain("| `VXLAN` | `vxlanMode: Always` |");
  });
});
