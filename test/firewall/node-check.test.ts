/** `node check` on a host with pods: it says whether the product's own tables are in place, and after whose flush they are not. */
import { describe, expect } from "bun:test";
import { API_VERSION, identity } from "../../src/identity.ts";
import { launchAgent } from "../agent/agent.ts";
import { hostProblem, openHost } from "../support/host.ts";
import { nodeChange, poolChange } from "../support/ipam.ts";
import { program, testNeeding } from "../support/needs.ts";
import { openPluginSite } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import { builtProgram } from "../support/run-plugin.ts";

const OWN = ["NAT", "spoofing", "host ports", "rp_filter"];
const POOLS = [poolChange("blue", "10.50.0.0/16", { natOutgoing: true }), nodeChange("node-1")];

describe("the check of a node", () => {
  testNeeding(hostProblem(), program("setpriv"))("and the agent ask another user to run them as root", async () => {
    await using host = await openHost();
    await host.must(["mkdir", "-p", identity.runDirectory]);
    const run = (...command: readonly string[]) =>
      host.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", ...command]);
    const asUser = async (...command: readonly string[]) => (await run(...command)).stderr;

    expect(await asUser(builtProgram(identity.adminTool), "node", "check")).toContain(
      "permission denied (run it as root)",
    );
    expect(await asUser(builtProgram(identity.nodeAgent))).toContain("(run it as root)");
    // It shows the rest.
    const { stdout } = await run("env", "HOME=/", builtProgram(identity.adminTool), "status");
    expect(stdout).toContain("warning: this host: Cannot check this host: permission denied (run it as root)\n");
  });

  testNeeding(hostProblem(), program("nft"))(
    "reports tables that another program flushed, and the way back",
    async () => {
      await using site = await openPluginSite("embedded", POOLS);
      const config = site.config({ ipam: { type: identity.ipamType } });
      const states = async () => {
        const { code, stdout } = await site.host.run([builtProgram(identity.adminTool), "node", "check", "-o", "json"]);
        const findings: readonly Readonly<Record<string, string>>[] = JSON.parse(stdout).findings;
        const own = findings.filter(({ check = "" }) => OWN.includes(check));
        return [
          code,
          ...own.map(({ state, remedy }) => (state === "ok" ? state : `${state}: ${remedy?.split(" ")[0]}`)),
        ];
      };
      const tool = identity.adminTool;
      const store = ["--datastore-type", "embedded", "--datastore-path", String(config["datastore_path"])];
      const restore = () => site.host.must([builtProgram(tool), "node", "restore", ...store]);
      expect(await states()).toEqual([0, "ok", "ok", "ok", "ok"]);
      const pod = await site.makePod();
      const { interfaces } = await site.add(pod, { config });
      const ports = {
        cniVersion: "1.1.0",
        name: "net",
        type: "portmap",
        prevResult: await site.add(pod, { config }),
        runtimeConfig: { portMappings: [{ hostPort: 8080, containerPort: 80, protocol: "tcp" }] },
      };
      const mapped = await site.call("ADD", pod, { program: builtProgram("portmap"), config: ports });
      expect(mapped.code).toBe(0);
      expect(await states()).toEqual([0, "ok", "ok", "ok", "ok"]);

      await site.host.must(["nft", "flush ruleset"]);
      expect(await states()).toEqual([1, `warning: ${tool}`, `failed: ${tool}`, `failed: ${tool}`, "ok"]);
      await restore();
      expect(await states()).toEqual([0, "ok", "ok", "ok", "ok"]);
      expect(await site.host.must(["nft", `list chain ip ${identity.hostPortTable} guard`])).toContain("drop");

      await site.host.must(["nft", "add", "rule", "inet", identity.guardTable, "sources", "accept"]);
      await site.host.must(["sh", "-c", `echo 0 > /proc/sys/net/ipv4/conf/${interfaces[0]?.name}/rp_filter`]);
      expect(await states()).toEqual([1, "ok", `failed: ${tool}`, "ok", "failed: sysctl"]);
      await site.add(pod, { config });
      expect(await states()).toEqual([0, "ok", "ok", "ok", "ok"]);
    },
  );
});

const POLICY = {
  apiVersion: API_VERSION,
  kind: "GlobalNetworkPolicy",
  metadata: { name: "closed" },
  spec: { selector: "all()", types: ["Ingress"] },
};

describe("the check and the status of a host", () => {
  testNeeding(hostProblem(), program("nft"))(
    "fail while nothing enforces a policy, and say what to start",
    async () => {
      await using site = await openPluginSite("embedded", POOLS);
      const { name, cniVersion, ...plugin } = site.config({ ipam: { type: identity.ipamType } });
      site.host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ name, cniVersion, plugins: [plugin] }));
      site.host.writeFile("/tmp/policy.json", JSON.stringify(POLICY));
      const tool = (...args: readonly string[]) => site.host.run([builtProgram(identity.adminTool), ...args]);
      /** The checks that are not ok, and whether the two commands fail for the same reasons. */
      const failed = async () => {
        const check = await tool("node", "check", "-o", "json");
        const status = await tool("status", "-o", "json");
        const findings: readonly Readonly<Record<string, string>>[] = JSON.parse(check.stdout).findings;
        const wrong = findings
          .filter(({ state }) => state !== "ok")
          .map((each) => `${each["check"]}: ${each["remedy"]}`);
        const shown: readonly Readonly<Record<string, string>>[] = JSON.parse(status.stdout).findings;
        expect(shown.map((each) => `${each["subject"]}: ${each["remedy"]}`)).toEqual(wrong);
        expect([check.code, status.code]).toEqual(wrong.length === 0 ? [0, 0] : [1, 1]);
        return wrong;
      };
      const { ips } = await site.add(await site.makePod(), { config: { name, cniVersion, ...plugin } });
      const address = ips[0]?.address.split("/")[0];
      expect(await failed()).toEqual([]);

      const start = `systemctl enable --now ${identity.nodeAgent}`;
      const unenforced = `note: nothing enforces it here: ${identity.nodeAgent} does not run (${start})\n`;
      expect((await tool("apply", "-f", "/tmp/policy.json")).stderr).toEndWith(unenforced);
      expect(await failed()).toEqual([`network policy: ${start}`]);
      const agent = launchAgent(site.host);
      await pollUntil(async () => (await tool("node", "check")).code === 0, "the agent to enforce it");
      expect(await failed()).toEqual([]);
      await agent.signal("TERM");
      await agent.ended;
      expect(await failed()).toEqual([`node agent: ${start}`, `network policy: ${start}`]);
      const explain = `policy explain --from 192.0.2.99 --to ${address} --protocol icmp -o json`.split(" ");
      expect(JSON.parse((await tool(...explain)).stdout).packets[0].note).toContain("changes wait for it");
      await site.host.must(["nft", `delete table inet ${identity.policyTable}`]);
      expect(await failed()).toEqual([`node agent: ${start}`, `network policy: ${start}`]);
      await tool("delete", "gnp", "closed");
      expect(await failed()).toEqual([`node agent: ${start}`]);
    },
  );
});

describe("the node agent", () => {
  testNeeding(
    hostProblem(),
    program("nft"),
    program("tc"),
  )("guards the host's loopback on every link that may route it, or switches that off", async () => {
    await using site = await openPluginSite("embedded", POOLS);
    const { name, cniVersion, ...plugin } = site.config({ ipam: { type: identity.ipamType } });
    site.host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ name, cniVersion, plugins: [plugin] }));
    const attach = async (hostPort: number) => {
      const pod = await site.makePod();
      const prevResult = await site.add(pod, { config: { name, cniVersion, ...plugin } });
      const runtimeConfig = { portMappings: [{ hostPort, containerPort: 80, protocol: "tcp" }] };
      const config = { cniVersion, name, type: "portmap", prevResult, runtimeConfig };
      expect((await site.call("ADD", pod, { program: builtProgram("portmap"), config })).code).toBe(0);
      return prevResult.interfaces[0]?.name ?? "";
    };
    const [former, taken] = [await attach(8080), await attach(8081)];
    const filters = async (link: string) =>
      [...(await site.host.must(["tc", "filter", "show", "dev", link, "ingress"])).matchAll(/mirred/g)].length;
    const routesLocalnet = async (link: string) =>
      (await site.host.must(["cat", `/proc/sys/net/ipv4/conf/${link}/route_localnet`])).trim();
    const own = await filters(former);
    // As a former release left it, and with the filter of another program in the place of ours.
    const remove = (link: string, ...what: readonly string[]) =>
      site.host.must(["tc", ...what, "dev", link, "ingress"]);
    for (const handle of ["800::3", "800::4"])
      await site.host.must(["tc", "filter", "del", "dev", former, "ingress", "pref", "1", "handle", handle, "u32"]);
    await remove(taken, "qdisc", "del");
    await remove(taken, "qdisc", "add");
    const other = ["pref", "1", "protocol", "ipv6", "u32", "match", "u32", "0", "0", "flowid", "1:1"];
    await site.host.must(["tc", "filter", "add", "dev", taken, "ingress", ...other]);
    await site.host.must(["nft", "flush ruleset"]);
    expect([await filters(former), await filters(taken), await routesLocalnet(taken)]).toEqual([own - 2, 0, "1"]);

    const agent = launchAgent(site.host);
    await pollUntil(() => agent.log().includes(identity.hostPortTable), "the agent to write the tables");
    expect([await filters(former), await routesLocalnet(former), await routesLocalnet(taken)]).toEqual([own, "1", "0"]);
    expect(await site.host.must(["nft", `list chain ip ${identity.hostPortTable} guard`])).toContain("drop");
    await agent.signal("TERM");
    await agent.ended;
  });

  testNeeding(hostProblem(), program("nft"))("writes flushed tables again when it starts", async () => {
    await using site = await openPluginSite("embedded", POOLS);
    const { name, cniVersion, ...plugin } = site.config({ ipam: { type: identity.ipamType } });
    site.host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ name, cniVersion, plugins: [plugin] }));
    await site.add(await site.makePod(), { config: { name, cniVersion, ...plugin } });
    /** In whichever order they were written. */
    const tables = async () =>
      (await site.host.must(["nft", "list", "ruleset"]))
        .split(/^(?=table )/m)
        .sort()
        .join("");
    const before = await tables();
    expect(before).toContain("masquerade");
    await site.host.must(["nft", "flush ruleset"]);

    const agent = launchAgent(site.host);
    await pollUntil(async () => (await tables()) === before, "the former rules");
    await agent.signal("TERM");
    await agent.ended;
  });
});
