/** ADD: addresses for one attachment, in one read and one commit, or in a commit that proves the read. */
import { decodeArguments } from "../../cni/arguments.ts";
import type { AddCall } from "../../cni/call.ts";
import { type CniResult, EMPTY_RESULT } from "../../cni/result.ts";
import type { NetworkConfig } from "../../config/network-config.ts";
import type { Entry } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { addressBits, parseAddress, unmapAddress } from "../../ip/address.ts";
import { formatInterfaceAddress } from "../../ip/prefix.ts";
import { requireReady, WANTED_CLUSTER } from "../cluster.ts";
import type { AssignedAddress, Wish } from "../request.ts";
import { ownerOf } from "./owner.ts";
import type { Session, Surroundings } from "./session.ts";

export async function add(call: AddCall, session: Session, surroundings: Surroundings): Promise<CniResult> {
  const { ip, podName, podNamespace } = decodeArguments(call.args);
  const clusterChanges = (cluster: readonly Entry[] | undefined) =>
    requireReady(cluster, {
      whenBare: session.settings.kind === "embedded" ? "create" : "refuse",
      now: surroundings.now(),
      uid: surroundings.uuid(),
    });
  const { addresses } = await session.allocator.assign(
    {
      ...ownerOf(call),
      node: session.node,
      attributes: {
        ...(podName === undefined ? {} : { pod: podName }),
        ...(podNamespace === undefined ? {} : { namespace: podNamespace }),
      },
      intendedUse: "Workload",
      wishes: ip === undefined ? wishesOf(session.config.ipam) : [givenWish(ip)],
    },
    {
      wanted: [WANTED_CLUSTER],
      check: ([cluster]) => void clusterChanges(cluster),
      changes: ([cluster]) => clusterChanges(cluster),
    },
  );
  return { ...EMPTY_RESULT, ips: addresses.map((each) => ({ address: resultAddress(each) })) };
}

function wishesOf(ipam: NetworkConfig["ipam"]): readonly Wish[] {
  const wishes: Wish[] = [];
  if (ipam.assignIpv4) wishes.push({ kind: "automatic", family: 4, pools: ipam.ipv4Pools });
  if (ipam.assignIpv6) wishes.push({ kind: "automatic", family: 6, pools: ipam.ipv6Pools });
  if (wishes.length > 0) return wishes;
  throw new PluginError("config-invalid", "Cannot assign an address: assign_ipv4 and assign_ipv6 are both off");
}

function givenWish(text: string): Wish {
  const address = parseAddress(text);
  if (address) return { kind: "given", address: unmapAddress(address) };
  throw new PluginError("environment-invalid", `Cannot use CNI_ARGS: IP is "${text}", which is no IP address`);
}

/** With the length of its block; an address asked for by name stands alone. */
function resultAddress({ address, block, given }: AssignedAddress): string {
  return formatInterfaceAddress({ address, length: given ? addressBits(address.family) : block.length });
}
