/** The packets that `policy trace` follows: what its options say, for each IP version. Pure. */
import { type Address, addressBits, type Family, formatAddress, parseAddress } from "../../../ip/address.ts";
import type { Expression } from "../../../linux/nftables/expression.ts";
import { matchFamily, matchPorts, matchPrefix, matchProtocol } from "../../../linux/nftables/match.ts";
import { protocolWords } from "../../../policy/judge/rule-words.ts";
import { type Given, UsageError } from "../../main/command.ts";
import { ICMP, readNumber, readProtocol, WITH_PORTS, wantedFamily } from "../explain/packet.ts";
import type { Peer } from "../explain/peer.ts";

/** Absent fields match everything. */
export interface Flow {
  readonly family: Family;
  readonly source?: Address;
  readonly destination?: Address;
  readonly protocol?: number;
  readonly port?: number;
  readonly sourcePort?: number;
}

/** One for each IP version, and for each address that an end has of it. */
export function flowsOf(given: Given, ends: { readonly from?: Peer; readonly to?: Peer }): readonly Flow[] {
  const { values } = given;
  const port = readNumber("port", values.get("port"), 65_535);
  const sourcePort = readNumber("source-port", values.get("source-port"), 65_535);
  const hasPort = (port ?? sourcePort) !== undefined;
  // All dropped packets are looked at: those of any protocol may have the port.
  const isOfAll = given.switches.has("dropped") && ends.from === undefined && ends.to === undefined;
  const named = values.get("protocol") ?? (hasPort && !isOfAll ? "tcp" : undefined);
  const protocol = named === undefined ? undefined : readProtocol(named);
  if (hasPort && named !== undefined && (typeof protocol !== "number" || !WITH_PORTS.has(protocol)))
    throw new UsageError(`"--${port === undefined ? "source-port" : "port"}" needs --protocol tcp, udp or sctp`);
  const wanted = wantedFamily(given);
  const flows = ([4, 6] as const).flatMap((family): Flow[] => {
    if (wanted !== undefined && wanted !== family) return [];
    const pairs = addressesIn(ends.from, family).flatMap((source) =>
      addressesIn(ends.to, family).map((destination) => ({ source, destination })),
    );
    return pairs.map(({ source, destination }) => ({
      family,
      ...(source === undefined ? {} : { source }),
      ...(destination === undefined ? {} : { destination }),
      ...(protocol === undefined ? {} : { protocol: protocol === "icmp" ? ICMP[family] : protocol }),
      ...(port === undefined ? {} : { port }),
      ...(sourcePort === undefined ? {} : { sourcePort }),
    }));
  });
  if (flows.length > 0) return flows;
  throw new UsageError("The two ends have no addresses of the same IP version");
}

/** `undefined` if it is not an address. */
export function addressPeer(word: string): Peer | undefined {
  const address = parseAddress(word);
  return address && { word, places: [{ address }] };
}

/** `undefined`: any. */
function addressesIn(peer: Peer | undefined, family: Family): readonly (Address | undefined)[] {
  if (peer === undefined) return [undefined];
  return peer.places.flatMap(({ address }) => (address.family === family ? [address] : []));
}

export function flowConditions({
  family,
  source,
  destination,
  protocol,
  port,
  sourcePort,
}: Flow): readonly Expression[] {
  const exactly = (network: Address) => ({ network, length: addressBits(network.family) });
  return [
    ...matchFamily(family),
    ...(source === undefined ? [] : matchPrefix("source", exactly(source))),
    ...(destination === undefined ? [] : matchPrefix("destination", exactly(destination))),
    ...(protocol === undefined ? [] : matchProtocol(protocol)),
    ...(sourcePort === undefined ? [] : matchPorts("source", sourcePort)),
    ...(port === undefined ? [] : matchPorts("destination", port)),
  ];
}

export function flowWords({ family, source, destination, protocol, port, sourcePort }: Flow): string {
  return [
    `IPv${family}`,
    ...(protocol === undefined ? [] : [protocolWords(protocol)]),
    ...(source === undefined ? [] : [`from ${formatAddress(source)}`]),
    ...(sourcePort === undefined ? [] : [`port ${sourcePort}`]),
    ...(destination === undefined ? [] : [`to ${formatAddress(destination)}`]),
    ...(port === undefined ? [] : [`${destination === undefined ? "to " : ""}port ${port}`]),
  ].join(" ");
}
