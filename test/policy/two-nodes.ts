/** Two hosts with a router between them, and its routes to their pods. */
import { untilLinkLocal } from "../support/connectivity.ts";
import type { Host } from "../support/host.ts";
import type { End } from "./policy-site.ts";

/** `eth1` of the router leads to the first host, `eth2` to the second; both default routes lead to the router. */
export async function connect(router: Host, host: Host, hop: number): Promise<void> {
  const link = ["ip", "link", "add", `eth${hop}`, "type", "veth", "peer", "name", "eth0", "netns", host.netns];
  const made = Bun.spawn(["nsenter", `--net=${router.netns}`, ...link], { stdin: "ignore", stderr: "pipe" });
  if ((await made.exited) !== 0) throw new Error(await new Response(made.stderr).text());
  for (const [each, name, end] of [
    [router, `eth${hop}`, 1],
    [host, "eth0", 2],
  ] as const) {
    await each.must(["ip", "addr", "add", `203.0.113.${hop * 16 + end}/28`, "dev", name]);
    await each.must(["ip", "addr", "add", `2001:db8:${hop}00::${end}/64`, "dev", name, "nodad"]);
    await each.must(["ip", "link", "set", name, "up"]);
  }
  await untilLinkLocal(router.must, `eth${hop}`);
  await untilLinkLocal(host.must, "eth0");
  await host.must(["ip", "route", "add", "default", "via", `203.0.113.${hop * 16 + 1}`]);
  await host.must(["ip", "-6", "route", "add", "default", "via", `2001:db8:${hop}00::1`]);
}

export async function routeTo(router: Host, { addresses }: Pick<End, "addresses">, hop: number): Promise<void> {
  await router.must(["ip", "route", "replace", addresses[0], "via", `203.0.113.${hop * 16 + 2}`]);
  await router.must(["ip", "-6", "route", "replace", addresses[1], "via", `2001:db8:${hop}00::2`]);
}
