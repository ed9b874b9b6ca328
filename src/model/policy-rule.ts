/**
 * One rule of a policy or a profile: what it matches and its action.
 * All criteria of a rule must match; in a list, at least one member must.
 *
 * Unknown fields of a stored rule are kept: they may be criteria of a newer release, without which the rule would match
 * more than its author wants (`unknownCriterion`).
 */
import * as v from "valibot";
import { packetNetworkField, selectorField } from "./fields.ts";
import { httpSchema } from "./http-rule.ts";
import { nameMap } from "./name-map.ts";
import { PROTOCOL_NAMES } from "./protocols.ts";
import { findUnknownFields } from "./shape.ts";

/** `443` or `1000:2000`. */
const PORT_RANGE = /^(\d{1,5})(?::(\d{1,5}))?$/;
/** With a letter: digits alone are a number, and `80-90` is meant to be a range. */
const PORT_NAME = /^(?=.*[a-zA-Z])[a-zA-Z0-9_.-]{1,128}$/;
const LAST_PORT = 65_535;

/** A number, a range `1000:2000`, or the name of a port of the endpoint. */
export const portField = v.pipe(
  v.union([v.number(), v.string()]),
  v.check(isPort, 'is not a port; use a number from 0 to 65535, a range like "1000:2000", or a name'),
);

export const protocolField = v.pipe(
  v.union([v.number(), v.string()]),
  v.check(isProtocol, "is not a protocol; use TCP, UDP, ICMP, ICMPv6, SCTP, UDPLite or a number from 1 to 255"),
);

const icmpField = v.looseObject({
  type: v.exactOptional(wholeNumber(0, 254)),
  code: v.exactOptional(wholeNumber(0, 255)),
});

const entityRule = v.looseObject({
  nets: v.exactOptional(v.array(packetNetworkField)),
  notNets: v.exactOptional(v.array(packetNetworkField)),
  selector: v.exactOptional(selectorField),
  notSelector: v.exactOptional(selectorField),
  namespaceSelector: v.exactOptional(selectorField),
  ports: v.exactOptional(v.array(portField)),
  notPorts: v.exactOptional(v.array(portField)),
  serviceAccounts: v.exactOptional(
    v.looseObject({ names: v.exactOptional(v.array(v.string())), selector: v.exactOptional(selectorField) }),
  ),
  services: v.exactOptional(v.looseObject({ name: v.string(), namespace: v.exactOptional(v.string()) })),
});

export const ruleSchema = v.looseObject({
  action: v.picklist(["Allow", "Deny", "Log", "Pass"]),
  ipVersion: v.exactOptional(v.picklist([4, 6])),
  protocol: v.exactOptional(protocolField),
  notProtocol: v.exactOptional(protocolField),
  icmp: v.exactOptional(icmpField),
  notICMP: v.exactOptional(icmpField),
  source: v.exactOptional(entityRule),
  destination: v.exactOptional(entityRule),
  http: v.exactOptional(httpSchema),
  metadata: v.exactOptional(v.object({ annotations: v.exactOptional(nameMap(v.string())) })),
});

export type EntityRule = Readonly<v.InferOutput<typeof entityRule>>;
export type PolicyRule = Readonly<v.InferOutput<typeof ruleSchema>>;

/** The path of the first field that this release does not know: `source.domains`. */
export function unknownCriterion(rule: PolicyRule): string | undefined {
  return findUnknownFields(ruleSchema, rule)[0]?.path;
}

/** Neither a number nor a range: the name of a port of the endpoint. */
export function isNamedPort(port: number | string): port is string {
  return typeof port === "string" && !PORT_RANGE.test(port);
}

function isProtocol(value: number | string): boolean {
  if (typeof value === "number") return Number.isInteger(value) && value >= 1 && value <= 255;
  return PROTOCOL_NAMES.includes(value.toLowerCase());
}

function isPort(value: number | string): boolean {
  if (typeof value === "number") return Number.isInteger(value) && value >= 0 && value <= LAST_PORT;
  const [, first, last = first] = PORT_RANGE.exec(value) ?? [];
  if (first !== undefined) return Number(first) <= Number(last) && Number(last) <= LAST_PORT;
  return PORT_NAME.test(value);
}

function wholeNumber(least: number, most: number) {
  const message = `is out of range; use a whole number from ${least} to ${most}`;
  return v.pipe(v.number(), v.integer(message), v.minValue(least, message), v.maxValue(most, message));
}
