/** The kernel's answer to the question which way a packet to an address goes. */
import { type Address, addressBits, addressBytes, addressFromBytes } from "../../../src/ip/address.ts";
import { prefixAround, prefixContains } from "../../../src/ip/prefix.ts";
import { attributesOf, type KernelMessage, type KernelRequest, Refusal } from "../message.ts";
import type { ModelAddress, ModelRoute } from "../model.ts";
import { type Namespace, writeHeader } from "../namespace.ts";
import { ADDRESS_FLAG, familyOf, MESSAGE, numberOf, ROUTE_FLAG, ROUTE_KIND, RTA, SCOPE, TABLE } from "../wire.ts";
import { lookUp } from "./lookup.ts";
import { isLinkLocal } from "./next-hop.ts";

const HEADER_LENGTH = 12;
const LOOPBACK = 1;

export function answerRoute(namespace: Namespace, request: KernelRequest): KernelMessage {
  const attributes = attributesOf(request, HEADER_LENGTH);
  const family = familyOf(request.payload.getUint8(0));
  const destination = addressFromBytes(attributes.get(RTA.destination) ?? new Uint8Array());
  if (family === undefined) throw new Refusal("EOPNOTSUPP");
  if (destination === undefined || destination.family !== family) throw new Refusal("EINVAL");
  const route = lookUp(namespace, { destination });
  if (typeof route === "string") throw new Refusal(route);
  return foundMessage(namespace, route, destination);
}

function foundMessage(namespace: Namespace, route: ModelRoute, destination: Address): KernelMessage {
  const { family } = destination;
  const linkIndex = route.kind === "local" || route.kind === "anycast" ? LOOPBACK : route.linkIndex;
  const source = route.preferredSource ?? chooseSource(namespace, route, destination);
  const isLoopback = source?.family === 4 && source.value >> 24n === 127n;
  if (isLoopback && linkIndex !== LOOPBACK) throw new Refusal("EINVAL");
  return {
    type: MESSAGE.newRoute,
    write(writer) {
      writeHeader(writer, HEADER_LENGTH, (view) => {
        view.setUint8(0, numberOf(family));
        view.setUint8(1, addressBits(family));
        view.setUint8(4, family === 4 || route.table > 255 ? TABLE.main : route.table);
        view.setUint8(6, SCOPE.universe);
        view.setUint8(7, ROUTE_KIND[route.kind]);
        view.setUint32(8, ROUTE_FLAG.cloned, true);
      });
      writer.u32(RTA.table, family === 4 ? TABLE.main : route.table);
      writer.bytes(RTA.destination, addressBytes(destination));
      if (linkIndex !== undefined) writer.u32(RTA.link, linkIndex);
      if (source !== undefined) writer.bytes(RTA.preferredSource, addressBytes(source));
      if (route.gateway !== undefined) writer.bytes(RTA.gateway, addressBytes(route.gateway));
    },
  };
}

/** An address of the link, best one in the network of the gateway; else of another link. */
function chooseSource(namespace: Namespace, route: ModelRoute, destination: Address): Address | undefined {
  if (route.kind === "local") return destination;
  const { family } = destination;
  const usable = namespace.addresses.filter(
    ({ address, scope, flags }) =>
      address.family === family && (flags & ADDRESS_FLAG.tentative) === 0 && (family === 6 || scope <= route.scope),
  );
  if (family === 6) return chooseSource6(usable, route, destination);
  const onLink = usable.filter(
    ({ linkIndex, flags }) => linkIndex === route.linkIndex && (flags & ADDRESS_FLAG.secondary) === 0,
  );
  const target = route.gateway ?? destination;
  const fitting = onLink.find(({ address, length }) => prefixContains(prefixAround(address, length), target));
  const elsewhere = usable.find(({ scope, flags }) => scope !== SCOPE.link && (flags & ADDRESS_FLAG.secondary) === 0);
  return (fitting ?? onLink[0] ?? elsewhere)?.address;
}

/** By the rules of RFC 6724 that can make a difference here. A link has its newest address first. */
function chooseSource6(usable: readonly ModelAddress[], route: ModelRoute, destination: Address): Address | undefined {
  const wanted = reachOf(destination);
  const candidates = usable
    .filter(({ linkIndex }) => wanted === REACH.global || linkIndex === route.linkIndex)
    .toReversed()
    .toSorted((one, other) => one.linkIndex - other.linkIndex || reachOf(other.address) - reachOf(one.address));
  const [best] = candidates
    .map((each) => ({ each, score: scoreOf(each, route, destination) }))
    .toSorted((one, other) => compareScores(other.score, one.score));
  return best?.each.address;
}

const REACH = { link: 2, site: 5, global: 14 } as const;

function reachOf(address: Address): number {
  if (address.value === 1n || isLinkLocal(address)) return REACH.link;
  return address.value >> 118n === 0x3fbn ? REACH.site : REACH.global;
}

/** One number for each rule, the most important first. */
function scoreOf({ address, length, linkIndex }: ModelAddress, route: ModelRoute, to: Address): readonly number[] {
  const reach = reachOf(address);
  const isEnough = reach >= reachOf(to);
  const common = address.value === to.value ? 128 : 128 - (address.value ^ to.value).toString(2).length;
  return [
    address.value === to.value ? 1 : 0,
    isEnough ? -reach : reach - 128,
    linkIndex === route.linkIndex ? 1 : 0,
    labelOf(address) === labelOf(to) ? 1 : 0,
    Math.min(common, length),
  ];
}

function compareScores(one: readonly number[], other: readonly number[]): number {
  for (const [rule, score] of one.entries()) if (score !== other[rule]) return score - (other[rule] ?? 0);
  return 0;
}

function labelOf({ value }: Address): string {
  if (value === 1n) return "loopback";
  return value >> 121n === 0x7en ? "unique local" : "other";
}
