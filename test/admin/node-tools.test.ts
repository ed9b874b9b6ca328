/** `node checksystem` and `node diags` on a real host: the kernel and the programs of the host are asked. */
import { describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { hostProblem, openHost } from "../support/host.ts";
import { program, testNeeding } from "../support/needs.ts";
import { builtProgram } from "../support/run-plugin.ts";

const SECRET = "eyJhbGciOiJub25lIn0.c2VjcmV0.x";

describe("tools for a node", () => {
  testNeeding(
    hostProblem(),
    program("nft"),
    program("ip"),
    program("tar"),
  )("try the kernel and collect the state of the host, and leave nothing behind", async () => {
    await using host = await openHost();
    const tool = builtProgram(identity.adminTool);
    const state = () => host.must(["sh", "-c", "nft list ruleset; ip -o link; ip netns"]);
    await host.must(["nft", "add", "table", "inet", "of_another"]);
    host.writeFile(`${identity.logDirectory}/cni/cni.log`, `a line with token=${SECRET}\n`);
    // A password of a BGP session in the file that docs/routing.md names, and in one that another BGPPeer names.
    const password = "S3cretOfTheFabric";
    host.writeFile(`${identity.configDirectory}/bgp-password`, `${password}\n`);
    host.writeFile(`${identity.configDirectory}/peers/rack-1.conf`, `${password}\n`);
    host.writeFile("/etc/cni/net.d/rack-2.conf", `${password}\n`);
    const bird = `${identity.runDirectory}/bird`;
    await host.must(["sh", "-c", `mkdir -p ${bird}; echo 'password "${password}";' > ${bird}/bird.conf`]);
    const before = await state();

    const checked = await host.run([tool, "node", "checksystem", "-o", "json"]);
    const { ok, features } = JSON.parse(checked.stdout);
    expect([checked.code, ok]).toEqual([0, true]);
    expect(features.length).toBeGreaterThan(10);
    expect(await host.must([tool, "node", "checksystem"])).toContain("ok      veth links");

    const archive = `${host.directory}/diags.tar.gz`;
    await host.must([tool, "node", "diags", "--archive", archive]);
    const content = await host.must(["tar", "-xzOf", archive]);
    expect(await host.must(["tar", "-tzvf", archive])).toMatch(/^-rw------- .*nft-rules\.txt$/m);
    expect(content).toContain("table inet of_another");
    expect(content).toContain("a line with token=[redacted]");
    expect(content).not.toContain(SECRET);
    expect(content).not.toContain(password);
    expect(content).toContain(`a file of an unknown kind: ${identity.configDirectory}/bgp-password\n`);
    expect((await host.run([tool, "node", "diags", "--archive", archive])).stderr).toContain("it exists already");
    expect(await state()).toBe(before);
  });

  testNeeding(hostProblem(), program("ip"))("warn of an IPv6 route that forwarding would cost the host", async () => {
    await using host = await openHost();
    const check = async () => (await host.run([builtProgram(identity.adminTool), "node", "check"])).stdout;
    const setting = (value: number) => host.must(["sh", "-c", `echo ${value} >/proc/sys/net/ipv6/conf/up.5/accept_ra`]);
    await host.must([
      "sh",
      "-ec",
      "ip link add up.5 type veth peer name other; ip link set up.5 up; ip link set other up",
    ]);
    await host.must(["ip", "-6", "route", "add", "default", "via", "fe80::1", "dev", "up.5", "proto", "ra"]);
    await setting(1);
    expect(await check()).toContain("run: sysctl -w net.ipv6.conf.up/5.accept_ra=2 ");

    await setting(2);
    expect(await check()).not.toContain("accept_ra");
    await setting(1);
    await host.must(["ip", "-6", "route", "replace", "default", "via", "fe80::1", "dev", "up.5", "proto", "static"]);
    expect(await check()).not.toContain("accept_ra");
  });
});
