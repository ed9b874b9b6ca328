/** The kernel's answer to the question which way a packet to an address goes. */
import { type Address, addressBits, addressBytes, addressFromBytes } from "../../../src/ip/address.ts";
import { prefixAround, prefixContains } from "../../../src/ip/prefix.ts";
import { attributesOf, type KernelMessage, type KernelRequest, Refusal } from "../message.ts";
import type { ModelAddress, ModelRoute } from "../model.ts";
import { type Namespace, writeHeader } from "../namespace.ts";
import { ADDRESS_FLAG, familyOf, MESSAGE, numberOf, ROUTE_FLAG, ROUTE_KIND, RTA, SCOPE, TABLE } from "../wire.ts";
import { lookUp } from "./lookup.ts";

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

/** Of the same scope, of the same link, with the longest common prefix. */
function chooseSource6(usable: readonly ModelAddress[], route: ModelRoute, destination: Address): Address | undefined {
  const score = ({ address, scope, linkIndex }: ModelAddress) => {
    const sameLink = linkIndex === route.linkIndex ? 2 : 0;
    const bits = 128 - (address.value ^ destination.value).toString(2).length;
    return (scope === SCOPE.universe ? 4_000 : 0) + sameLink * 500 + bits;
  };
  let best: ModelAddress | undefined;
  for (const each of usable) {
    if (each.scope === SCOPE.link && each.linkIndex !== route.linkIndex) continue;
    if (best === undefined || score(each) > score(best)) best = each;
  }
  return best?.address;
}
