/** CNI_ARGS: they are checked before the namespace, and options that need a pod are refused without one. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { hostProblem } from "../support/host.ts";
import { testNeeding } from "../support/needs.ts";
import { failureOf, openPluginSite, type PluginSite, type Pod } from "../support/plugin-site.ts";

const test = testNeeding(hostProblem());

describe("CNI_ARGS", () => {
  let site: PluginSite;
  beforeAll(async () => {
    if (hostProblem() === undefined) site = await openPluginSite("embedded");
  });
  afterAll(() => site?.[Symbol.asyncDispose]());

  const MALFORMED = ["K8S_POD_NAME", "K8S_POD_NAME=a=b", "IgnoreUnknown=perhaps;X=1", "X=1"];
  const NAMESPACES = ["/run/netns/vt-absent", "/dev/null"];

  for (const command of ["ADD", "DEL", "CHECK"] as const) {
    test(`that are malformed are reported by ${command} before the namespace is opened`, async () => {
      const prevResult = { cniVersion: "1.1.0", interfaces: [], ips: [] };
      const config = site.config(command === "CHECK" ? { prevResult } : {});
      for (const args of MALFORMED) {
        for (const netns of NAMESPACES) {
          const pod: Pod = { containerId: "abc", netnsName: "", netns, ifname: "eth0", args };
          const failure = failureOf(await site.call(command, pod, { config }));
          expect([args, netns, failure]).toEqual([args, netns, expect.objectContaining({ code: 4 })]);
          expect(failure.msg).toContain("CNI_ARGS");
        }
      }
      expect(await site.left()).toEqual([]);
    });
  }

  test("without a pod make feature_control.ip_addrs_no_ipam an error of ADD; DEL succeeds", async () => {
    const config = site.config({ feature_control: { ip_addrs_no_ipam: true } });
    for (const args of ["", "IP=10.50.0.9", "IgnoreUnknown=1;K8S_POD_NAME=web"]) {
      const pod = await site.makePod({ args });
      const failure = failureOf(await site.call("ADD", pod, { config }));

      expect(failure).toMatchObject({
        code: 7,
        msg: expect.stringContaining('"feature_control.ip_addrs_no_ipam"'),
        details: expect.stringContaining('"feature_control.ip_addrs_no_ipam"'),
      });
      await site.quietly("DEL", pod, { config });
    }
    expect(await site.left()).toEqual([]);
  });

  test("with a pod allow feature_control.ip_addrs_no_ipam", async () => {
    const config = site.config({ feature_control: { ip_addrs_no_ipam: true } });
    const pod = await site.makePod({ args: "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web" });
    await site.add(pod, { config });
    await site.quietly("DEL", pod, { config });
    expect(await site.left()).toEqual([]);
  });
});
