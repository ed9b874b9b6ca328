/** ADD of the built IPAM plugin, outside of any pod: returns the addresses. */
import { identity } from "../../src/identity.ts";
import { builtProgram, runPlugin } from "../support/run-plugin.ts";

export interface AddressRequest {
  readonly container: string;
  readonly node: string;
  /** CNI_ARGS */
  readonly args?: string;
  /** Fields of the network config. */
  readonly datastore: object;
}

export async function addAddress({ container, node, args, datastore }: AddressRequest): Promise<readonly string[]> {
  const { stdout } = await runPlugin(builtProgram(identity.ipamType), {
    env: {
      CNI_COMMAND: "ADD",
      CNI_CONTAINERID: container,
      CNI_IFNAME: "eth0",
      CNI_NETNS: "/proc/self/ns/net",
      CNI_PATH: "/",
      ...(args === undefined ? {} : { CNI_ARGS: args }),
    },
    stdin: {
      cniVersion: "1.0.0",
      name: "k8s-pod-network",
      type: identity.product,
      nodename: node,
      ...datastore,
      ipam: { type: identity.ipamType },
    },
  });
  const { ips, msg, details } = JSON.parse(stdout);
  if (ips === undefined) throw new Error(`${msg}: ${details}`);
  return ips.map(({ address }: { address: string }) => address.split("/")[0]);
}
