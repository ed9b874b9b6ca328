/** CHECK: every element and every rule of the attachment's ports is as ADD left it. */
import type { CheckCall } from "../../cni/call.ts";
import { PluginError } from "../../errors.ts";
import { formatAddress } from "../../ip/address.ts";
import { type NetlinkSocket, openNetlinkSocket } from "../../linux/netlink-socket.ts";
import { findChain, findElements } from "../../linux/nftables/read.ts";
import type { NftElement } from "../../linux/nftables/set.ts";
import { isSameContainer } from "./attachment.ts";
import { formatHostPort } from "./claim.ts";
import { podKey, portElement, portKey, sourceElement } from "./elements.ts";
import type { Holding, KeptRecord } from "./holding.ts";
import { loopbackSourcesAllowed } from "./pod-link.ts";
import { chainsOf, needsNeighbourRule, SET, tableOf } from "./table.ts";
import { readBase } from "./view.ts";
import { wantedBy } from "./wanted.ts";

export function check(call: CheckCall): void {
  const { holdings, loopbackLink } = wantedBy(call);
  if (holdings.length === 0) return;
  const socket = openNetlinkSocket("netfilter");
  const problems = holdings.flatMap((holding) => [
    ...tableProblems(socket, holding),
    ...elementProblems(socket, holding),
  ]);
  if (loopbackLink !== undefined && !loopbackSourcesAllowed(loopbackLink)) {
    problems.push(`127.0.0.1 is not let out by link "${loopbackLink.name}" (route_localnet)`);
  }
  if (problems.length === 0) return;
  throw new PluginError("check-failed", `Cannot confirm the host ports of the container: ${problems.join("; ")}`);
}

function tableProblems(socket: NetlinkSocket, { family, records }: Holding): readonly string[] {
  const table = tableOf(family);
  const problems: string[] = [];
  for (const chain of chainsOf(family)) {
    const found = findChain(socket, table, chain.name);
    if (found === undefined) problems.push(`table ${table.family} "${table.name}" has no chain "${chain.name}"`);
    else if (!Bun.deepEquals(found.base, chain.base)) problems.push(`chain "${chain.name}" is hooked in elsewhere`);
  }
  const lengths = records.flatMap((record) =>
    record.kind === "source" && needsNeighbourRule(family, record.hidden.length) ? [record.hidden.length] : [],
  );
  const base = readBase(socket, family, lengths);
  if (base.isIntact && base.neighbourLengths.length === lengths.length) return problems;
  return [...problems, `the rules of table ${table.family} "${table.name}" are not as they were made`];
}

function elementProblems(socket: NetlinkSocket, { family, owner, records }: Holding): readonly string[] {
  const find = (set: string, key: Uint8Array) => findElements(socket, tableOf(family), set, [key])[0];
  const isOurs = (element: NftElement | undefined) =>
    element?.data instanceof Uint8Array && isSameContainer(element.data, owner.id);

  return records.flatMap((record: KeptRecord): readonly string[] => {
    if (record.kind === "source") {
      const pod = record.hidden.podAddress;
      const isThere = find(SET.masquerade, sourceElement(record.hidden).key) !== undefined;
      return isThere && isOurs(find(SET.owners, podKey(pod)))
        ? []
        : [`sources of ${formatAddress(pod)} are not hidden`];
    }
    const { claim } = record;
    const holder = find(SET.owners, portKey(claim));
    if (holder === undefined) return [`host port ${formatHostPort(claim)} is not mapped`];
    if (!isOurs(holder))
      return [`host port ${formatHostPort(claim)} belongs to "${holder.comment ?? "somebody else"}"`];
    if (!Bun.deepEquals(holder.data, owner.id)) return [];
    const leads = Bun.deepEquals(find(SET.ports, portKey(claim))?.data, portElement(claim).data);
    return leads ? [] : [`host port ${formatHostPort(claim)} does not lead to the container`];
  });
}
