/**
 * docs/podman.md is true: its commands are run in their order, on a private host
 * with a gateway that knows no pod. Only the packages and the image are there before.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { buildPackage } from "../../scripts/deb/build-package.ts";
import { identity } from "../../src/identity.ts";
import { launchAgent } from "../agent/agent.ts";
import { openDocsPage } from "../support/docs-page.ts";
import { type Host, openHost } from "../support/host.ts";
import { program, testNeeding } from "../support/needs.ts";
import { BIN_DIRECTORY } from "../support/network-under-test.ts";
import { packageRequest } from "../support/package-request.ts";
import { podmanProblem } from "../support/podman.ts";
import { pollUntil } from "../support/poll.ts";
import { makeRootfs } from "../support/rootfs.ts";

const needs = [podmanProblem(), program("dpkg-deb"), program("curl"), program("tc")];
const testPage = testNeeding(...needs);

const page = openDocsPage("podman.md", { without: /^(apt-get|make|systemctl) .*$/gm });

describe("the page about podman", () => {
  let host: Host;
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    host = await openHost();
    await prepare(host);
  });
  afterAll(() => host?.[Symbol.asyncDispose]());

  const type = (title: string) => page.type(title, { host });

  testPage("installs the package", async () => {
    expect(await type("Install")).toContain(`Setting up ${identity.product}`);
  });

  testPage("switches the network on, and a container reaches the gateway", async () => {
    const printed = await type("Switch the network on");

    expect(printed).toContain('Using the embedded datastore of network config "/etc/cni/net.d/');
    expect(printed).toMatch(/^node\/\S+ created$/m);
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
    expect(printed).toMatch(/^default\/web +pods +10\.66\.0\.\d+ +\S+ +0$/m);
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
    const agent = launchAgent(host);
    await pollUntil(() => agent.log().includes("serves the plugins' calls"), "the agent to serve");
    const printed = await type("Policy");
    await agent.signal("TERM");
    await agent.ended;

    expect(printed.match(/^(rows|refused)$/gm)).toEqual(["rows", "refused", "rows", "rows", "rows"]);
    expect(printed).toContain("labelled");
  });

  testPage("leaves nothing that is in use, and no program", async () => {
    const printed = await type("Take it down");

    expect(printed).toContain("0 addresses in use, 0 handles: no problems");
    expect(existsSync(host.view(join(BIN_DIRECTORY, identity.product)))).toBe(false);
  });

  testPage("has no section that is not tried", () => {
    expect(page.untried()).toEqual([]);
  });
});

/** What Debian's own packages and a real host would bring: dpkg's records, a /usr to write to, a gateway, an image. */
async function prepare(host: Host): Promise<void> {
  await host.must(["sh", "-ec", OWN_USR_AND_GATEWAY]);
  Bun.spawnSync(["cp", "-a", "/var/lib/dpkg", host.view("/var/lib/dpkg")]);
  host.writeFile("/etc/containers/containers.conf.d/10-test.conf", PODMAN_SETTINGS);
  host.writeFile("/usr/local/bin/podman", podmanInCgroup(host.name));
  const folder = join(host.directory, "dist");
  await host.must(["sh", "-ec", `chmod 755 /usr/local/bin/podman; mkdir ${folder}`]);
  await buildPackage(packageRequest(host.view(folder)));
  const archive = join(host.directory, "image.tar");
  await host.must(["tar", "--numeric-owner", "-C", makeRootfs(host), "-cf", archive, "."]);
  await host.must(["podman", "import", archive, "docker.io/library/busybox:latest"]);
}

const OWN_USR_AND_GATEWAY = `
mkdir -p /run/usr/upper /run/usr/work
mount -t overlay vt -o lowerdir=/usr,upperdir=/run/usr/upper,workdir=/run/usr/work /usr
ip netns add gateway
ip link add uplink type veth peer name eth0 netns gateway
ip addr add 192.0.2.2/24 dev uplink
ip link set uplink up
ip -n gateway addr add 192.0.2.1/24 dev eth0
ip -n gateway link set eth0 up
ip route add default via 192.0.2.1
`;

/** Limits that fit hosts which may not raise theirs; crun refuses hosts with both cgroup versions. */
const PODMAN_SETTINGS = `
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
log_driver = "k8s-file"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
`;

/** Puts containers into the host's cgroup, which is removed with it. */
function podmanInCgroup(name: string): string {
  return `#!/bin/sh
if [ "$1" = run ]; then shift; set -- run --cgroup-parent /${name} "$@"; fi
exec /usr/bin/podman "$@"
`;
}
