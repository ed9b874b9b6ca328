/** A container whose DEL did not reach the datastore, on its own host: its missing interface tells that it is gone. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { hostProblem } from "../support/host.ts";
import { testNeeding } from "../support/needs.ts";
import { openPluginSite, type PluginSite } from "../support/plugin-site.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { startAgent } from "./agent.ts";

const test = testNeeding(hostProblem());
/** With the name of the container, as podman gives it. */
const ARGS = "IgnoreUnknown=1;K8S_POD_NAME=web";

describe("a container that is gone without a DEL", () => {
  let site: PluginSite;
  beforeAll(async () => {
    if (hostProblem() === undefined) site = await openPluginSite("embedded");
  });
  afterAll(() => site?.[Symbol.asyncDispose]());

  const attach = async () => {
    const { ips, interfaces } = await site.add(await site.makePod({ args: ARGS }));
    return { address: ips[0]?.address.split("/")[0] ?? "", link: interfaces[0]?.name ?? "" };
  };
  const admin = (command: string) => site.host.run([builtProgram(identity.adminTool), ...command.split(" ")]);

  test("is named by status at once, and its name means the container that runs", async () => {
    const { name, cniVersion, ...plugin } = site.config();
    site.host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ name, cniVersion, plugins: [plugin] }));
    const old = await attach();
    await startAgent(site.host);
    expect((await admin("status")).stdout).not.toContain("gone");

    await site.host.must(["ip", "link", "delete", old.link]);
    const running = await attach();
    const { stdout } = await admin("status");
    expect(stdout).toMatch(/^warning: containers: web is gone: no interface on this host; .* within 10 minutes$/m);
    expect(stdout).toContain(running.link);
    expect(stdout).not.toContain(old.link);

    const explained = await admin("policy explain --from 192.0.2.1 --to web --port 80");
    expect(explained).toMatchObject({ code: 0, stdout: expect.stringContaining(running.address) });
  });
});
