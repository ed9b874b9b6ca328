/** Rules that choose the routing table. */
import { addressBits, addressBytes, addressFromBytes } from "../../../src/ip/address.ts";
import { isSamePrefix, type Prefix, prefixAround } from "../../../src/ip/prefix.ts";
import { FLAG } from "../../../src/linux/netlink/wire.ts";
import {
  type Attributes,
  attributesOf,
  type KernelMessage,
  type KernelRequest,
  numberIn,
  Refusal,
} from "../message.ts";
import type { ModelRule } from "../model.ts";
import { type Namespace, writeHeader } from "../namespace.ts";
import { familyOf, GROUP, MESSAGE, numberOf, RULE, TABLE } from "../wire.ts";

const HEADER_LENGTH = 12;
const TO_TABLE = 1;

export function newRule(namespace: Namespace, request: KernelRequest): boolean {
  const asked = readRule(request);
  const rule: ModelRule = { ...asked, priority: asked.priority ?? defaultPriority(namespace, asked.family) };
  const isExclusive = (request.flags & FLAG.exclusive) !== 0;
  if (isExclusive && namespace.rules.some((each) => coversRule(each, rule))) throw new Refusal("EEXIST");
  if (rule.family === 6) namespace.ipv6Tables.add(rule.table);
  else namespace.hasOwnIpv4Rules = true;
  const before = namespace.rules.findIndex(
    ({ family, priority }) => family === rule.family && priority > rule.priority,
  );
  if (before === -1) namespace.rules.push(rule);
  else namespace.rules.splice(before, 0, rule);
  namespace.announce(GROUP.rule[rule.family], ruleMessage(rule), request);
  return true;
}

export function deleteRule(namespace: Namespace, request: KernelRequest): boolean {
  const asked = readRule(request);
  const at = namespace.rules.findIndex(
    (rule) =>
      rule.family === asked.family &&
      rule.table === asked.table &&
      (asked.priority === undefined || rule.priority === asked.priority) &&
      (asked.source === undefined || (rule.source !== undefined && isSamePrefix(rule.source, asked.source))),
  );
  const [gone] = at === -1 ? [] : namespace.rules.splice(at, 1);
  if (gone === undefined) throw new Refusal("ENOENT");
  namespace.announce(GROUP.rule[gone.family], ruleMessage(gone, MESSAGE.deleteRule), request);
  return true;
}

export function dumpRules(namespace: Namespace, request: KernelRequest): readonly KernelMessage[] {
  const wanted = familyOf(request.payload.getUint8(0));
  const rules = namespace.rules.filter(({ family }) => wanted === undefined || family === wanted);
  return rules.map((rule) => ruleMessage(rule));
}

function readRule(request: KernelRequest): Omit<ModelRule, "priority"> & { readonly priority?: number } {
  const attributes = attributesOf(request, HEADER_LENGTH);
  const { payload } = request;
  const family = familyOf(payload.getUint8(0));
  if (family === undefined) throw new Refusal("EAFNOSUPPORT");
  const source = sourceIn(attributes, payload.getUint8(2));
  if (source !== undefined && (source.network.family !== family || source.length > addressBits(family)))
    throw new Refusal("EINVAL");
  const priority = numberIn(attributes, RULE.priority);
  return {
    family,
    table: numberIn(attributes, RULE.table) ?? payload.getUint8(4),
    ...(source === undefined ? {} : { source }),
    ...(priority === undefined ? {} : { priority }),
  };
}

function sourceIn(attributes: Attributes, length: number): Prefix | undefined {
  const network = addressFromBytes(attributes.get(RULE.source) ?? new Uint8Array());
  if (length === 0) return undefined;
  if (network === undefined) throw new Refusal("EINVAL");
  return prefixAround(network, length);
}

/** Before the second rule. */
function defaultPriority(namespace: Namespace, family: ModelRule["family"]): number {
  const [, second] = namespace.rules.filter((rule) => rule.family === family);
  return second === undefined || second.priority === 0 ? 0 : second.priority - 1;
}

/** A new rule without a source counts as the same as one with any source. */
function coversRule(existing: ModelRule, rule: ModelRule): boolean {
  const isAlike =
    existing.family === rule.family && existing.priority === rule.priority && existing.table === rule.table;
  if (!isAlike || rule.source === undefined) return isAlike;
  return existing.source !== undefined && isSamePrefix(existing.source, rule.source);
}

function ruleMessage(rule: ModelRule, type: number = MESSAGE.newRule): KernelMessage {
  return {
    type,
    write(writer) {
      writeHeader(writer, HEADER_LENGTH, (view) => {
        view.setUint8(0, numberOf(rule.family));
        view.setUint8(2, rule.source?.length ?? 0);
        view.setUint8(4, rule.table < 256 ? rule.table : TABLE.default - 1);
        view.setUint8(7, TO_TABLE);
      });
      writer.u32(RULE.table, rule.table);
      writer.u32(RULE.priority, rule.priority);
      if (rule.source !== undefined) writer.bytes(RULE.source, addressBytes(rule.source.network));
    },
  };
}
