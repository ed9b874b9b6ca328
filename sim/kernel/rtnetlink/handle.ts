/** Carries out one rtnetlink request on the model. */
import { FLAG } from "../../../src/linux/netlink/wire.ts";
import { attributesOf, type KernelMessage, type KernelRequest, Refusal, textIn } from "../message.ts";
import type { Namespace } from "../namespace.ts";
import { familyOf, IFLA, MESSAGE } from "../wire.ts";
import { addressMessage } from "./address-message.ts";
import { deleteAddress, newAddress } from "./address-requests.ts";
import type { KernelDevices } from "./create-link.ts";
import { linkMessage } from "./link-message.ts";
import { readLinkRequest } from "./link-request.ts";
import { deleteLink, newLink } from "./link-requests.ts";
import { noticeCarrier } from "./link-state.ts";
import { deleteNeighbour, dumpNeighbours, newNeighbour } from "./neighbours.ts";
import { answerRoute } from "./route-answer.ts";
import { routeMessage } from "./route-message.ts";
import { deleteRoute, newRoute } from "./route-requests.ts";
import { deleteRule, dumpRules, newRule } from "./rules.ts";

type Change = (namespace: Namespace, request: KernelRequest, devices: KernelDevices) => boolean;
type Question = (namespace: Namespace, request: KernelRequest) => KernelMessage;
type Dump = (namespace: Namespace, request: KernelRequest) => readonly KernelMessage[];

/** Each returns whether anything changed, or throws a `Refusal`. */
const CHANGES: ReadonlyMap<number, Change> = new Map<number, Change>([
  [MESSAGE.newLink, newLink],
  [MESSAGE.deleteLink, deleteLink],
  [MESSAGE.newAddress, newAddress],
  [MESSAGE.deleteAddress, deleteAddress],
  [MESSAGE.newRoute, newRoute],
  [MESSAGE.deleteRoute, deleteRoute],
  [MESSAGE.newNeighbour, newNeighbour],
  [MESSAGE.deleteNeighbour, deleteNeighbour],
  [MESSAGE.newRule, newRule],
  [MESSAGE.deleteRule, deleteRule],
]);

const QUESTIONS: ReadonlyMap<number, Question> = new Map<number, Question>([
  [MESSAGE.getLink, answerLink],
  [MESSAGE.getRoute, answerRoute],
]);

const DUMPS: ReadonlyMap<number, Dump> = new Map<number, Dump>([
  [MESSAGE.getLink, dumpLinks],
  [MESSAGE.getAddress, dumpAddresses],
  [MESSAGE.getRoute, dumpRoutes],
  [MESSAGE.getNeighbour, dumpNeighbours],
  [MESSAGE.getRule, dumpRules],
]);

/** The rows of a table, if the request asks for one; throws a `Refusal` otherwise, or `undefined` after a change. */
export type Outcome =
  | { readonly kind: "done"; readonly hasChanged: boolean }
  | { readonly kind: "answer"; readonly message: KernelMessage }
  | { readonly kind: "dump"; readonly messages: readonly KernelMessage[] };

export function handleRequest(namespace: Namespace, request: KernelRequest, devices: KernelDevices): Outcome {
  const change = CHANGES.get(request.type);
  if (change !== undefined) return { kind: "done", hasChanged: change(namespace, request, devices) };
  if ((request.flags & FLAG.dump) === FLAG.dump) {
    const dump = DUMPS.get(request.type);
    if (dump !== undefined) return { kind: "dump", messages: dump(namespace, request) };
  }
  const question = QUESTIONS.get(request.type);
  if (question === undefined) throw new Refusal("EOPNOTSUPP");
  return { kind: "answer", message: question(namespace, request) };
}

/** The kernel notices a change of the carrier at the latest now. */
function answerLink(namespace: Namespace, request: KernelRequest): KernelMessage {
  const { index, attributes } = readLinkRequest(request);
  const name = textIn(attributes, IFLA.name);
  if (index === 0 && name === undefined) throw new Refusal("EINVAL");
  const link = index > 0 ? namespace.links.get(index) : namespace.linkNamed(name ?? "");
  if (link === undefined) throw new Refusal("ENODEV");
  noticeCarrier({ namespace, link });
  return linkMessage(namespace, link);
}

function dumpLinks(namespace: Namespace): readonly KernelMessage[] {
  return [...namespace.links.values()].map((link) => linkMessage(namespace, link));
}

function dumpAddresses(namespace: Namespace, request: KernelRequest): readonly KernelMessage[] {
  attributesOf(request, 8);
  const family = familyOf(request.payload.getUint8(0));
  const wanted = namespace.addresses.filter(({ address }) => family === undefined || address.family === family);
  return wanted.map((address) => addressMessage(address));
}

function dumpRoutes(namespace: Namespace, request: KernelRequest): readonly KernelMessage[] {
  attributesOf(request, 12);
  const family = familyOf(request.payload.getUint8(0));
  const wanted = namespace.routes.filter(
    ({ destination }) => family === undefined || destination.network.family === family,
  );
  return wanted.map((route) => routeMessage(namespace, route));
}
