/** Outgoing NAT: a pod reaches a machine outside that has no route back to the pools. */
import type { DemoEnvironment } from "./environment.ts";
import type { StepResult } from "./output.ts";
import type { Pod } from "./pod-starters.ts";

const OUTSIDE = ["198.51.100.1", "2001:db8:51::1"];

/** A network namespace behind an uplink of the host, which knows only the addresses of the host itself. */
const CONNECT = `
ip netns add vt-outside
ip link add uplink type veth peer name eth0 netns vt-outside
ip address add 198.51.100.2/24 dev uplink
ip address add 2001:db8:51::2/64 dev uplink nodad
ip link set uplink up
ip -n vt-outside address add 198.51.100.1/24 dev eth0
ip -n vt-outside address add 2001:db8:51::1/64 dev eth0 nodad
ip -n vt-outside link set eth0 up
`;

const DISCONNECT = "ip link delete uplink; ip netns delete vt-outside";

export async function reachOutside({ host }: DemoEnvironment, [pod]: readonly Pod[]): Promise<StepResult> {
  if (pod === undefined) throw new Error("Cannot reach the outside: there are no pods");
  await host.must(["sh", "-ec", CONNECT]);
  for (const address of OUTSIDE) {
    await host.must(["nsenter", `--net=${pod.attachment.netns}`, "ping", "-c", "1", "-W", "2", address]);
  }
  await host.must(["sh", "-ec", DISCONNECT]);
  return { summary: `"${pod.name}" reaches ${OUTSIDE.join(" and ")}, which have no route to the pools` };
}
