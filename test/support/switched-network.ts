/**
 * Hosts on a switch, all of them network namespaces:
 *
 *   switch  10.250.0.254 ── bridge ── port0 ── host 0  10.250.0.1
 *                                 └── port1 ── host 1  10.250.0.2 …
 *
 * A cut port loses every packet silently, like a pulled cable.
 */
import { type NetnsArea, runIn, type TestNetns } from "./netns.ts";

export interface SwitchedHost {
  readonly address: string;
  readonly netns: TestNetns;
  /** The name of its port on the switch. */
  readonly port: string;
}

export interface SwitchedNetwork {
  readonly middle: TestNetns;
  readonly hosts: readonly SwitchedHost[];
}

/** The caller removes the namespaces of the area. */
export function makeSwitchedNetwork(area: NetnsArea, count: number): SwitchedNetwork {
  const middle = area.create("switch");
  const inMiddle = (text: string) => runIn(middle, ["ip", ...text.split(" ")]);
  inMiddle("link add bridge type bridge");
  inMiddle("address add 10.250.0.254/24 dev bridge");
  inMiddle("link set bridge up");
  const hosts = Array.from({ length: count }, (_, index): SwitchedHost => {
    const netns = area.create(`host${index}`);
    const port = `port${index}`;
    const address = `10.250.0.${index + 1}`;
    inMiddle(`link add ${port} type veth peer name eth0 netns ${netns.name}`);
    inMiddle(`link set ${port} master bridge up`);
    runIn(netns, ["ip", "address", "add", `${address}/24`, "dev", "eth0"]);
    runIn(netns, ["ip", "link", "set", "eth0", "up"]);
    return { address, netns, port };
  });
  return { middle, hosts };
}
