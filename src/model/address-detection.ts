/** How the agent finds an address of its node, in the words that operators know: "first-found", "interface=eth.*". */
import * as v from "valibot";
import type { Family } from "../ip/address.ts";
import { parseAddress } from "../ip/address.ts";
import { type Prefix, parsePrefix } from "../ip/prefix.ts";

export type AddressDetection =
  | { readonly kind: "first-found" }
  /** The InternalIP of the orchestrator's Node. */
  | { readonly kind: "internal-ip" }
  /** The name of the interface matches one of the patterns somewhere. */
  | { readonly kind: "interface" | "skip-interface"; readonly patterns: readonly RegExp[] }
  /** An address or a name. */
  | { readonly kind: "can-reach"; readonly destination: string }
  | { readonly kind: "cidr"; readonly cidrs: readonly Prefix[] }
  | { readonly kind: "none" };

/** The part after "=" is examined by `detectionProblem`. */
export const DETECTION_PATTERN =
  /^(first-found|kubernetes-internal-ip|none|(interface|skip-interface|can-reach|cidr)=.*)$/;
export const NOT_A_DETECTION =
  'is not a method to find an address; use "first-found", "kubernetes-internal-ip", "interface=REGEX", "skip-interface=REGEX", "can-reach=DESTINATION", "cidr=CIDR" or "none"';
const HOST_NAME = /^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\.?$/;

export const ipv4DetectionField = detectionField(4);
export const ipv6DetectionField = detectionField(6);

function detectionField(family: Family) {
  return v.pipe(
    v.string(),
    v.check(
      (text) => detectionProblem(text, family) === undefined,
      (issue) => detectionProblem(issue.input, family) ?? "",
    ),
  );
}

/** Of text that the field accepts; other text finds nothing. */
export function parseAddressDetection(text: string): AddressDetection {
  const { method, values } = split(text);
  switch (method) {
    case "first-found":
      return { kind: "first-found" };
    case "kubernetes-internal-ip":
      return { kind: "internal-ip" };
    case "interface":
    case "skip-interface":
      return { kind: method, patterns: values.flatMap((value) => pattern(value) ?? []) };
    case "can-reach":
      return { kind: "can-reach", destination: values.join(",") };
    case "cidr":
      return { kind: "cidr", cidrs: values.flatMap((value) => parsePrefix(value) ?? []) };
    default:
      return { kind: "none" };
  }
}

function split(text: string): { readonly method: string; readonly values: readonly string[] } {
  const at = text.indexOf("=");
  if (at < 0) return { method: text, values: [] };
  const values = text.slice(at + 1).split(",");
  return { method: text.slice(0, at), values: values.map((value) => value.trim()) };
}

function pattern(text: string): RegExp | undefined {
  try {
    return new RegExp(text);
  } catch {
    return undefined;
  }
}

function detectionProblem(text: string, family: Family): string | undefined {
  if (!DETECTION_PATTERN.test(text)) return NOT_A_DETECTION;
  const { method, values } = split(text);
  switch (method) {
    case "interface":
    case "skip-interface": {
      const bad = values.find((value) => value === "" || pattern(value) === undefined);
      if (bad === undefined) return undefined;
      return `has "${bad}", which is not a regular expression; use for example "${method}=eth.*,ens.*"`;
    }
    case "can-reach":
      return destinationProblem(values.join(","), family);
    case "cidr": {
      const bad = values.find((value) => parsePrefix(value)?.network.family !== family);
      if (bad === undefined) return undefined;
      return `has "${bad}", which is not an IPv${family} CIDR; use for example "cidr=${DETECTION_EXAMPLES[family].cidr}"`;
    }
    default:
      return undefined;
  }
}

export const DETECTION_EXAMPLES = {
  4: { cidr: "192.0.2.0/24", address: "192.0.2.1" },
  6: { cidr: "2001:db8::/64", address: "2001:db8::1" },
} as const;

function destinationProblem(destination: string, family: Family): string | undefined {
  const address = parseAddress(destination);
  if (address === undefined ? HOST_NAME.test(destination) : address.family === family) return undefined;
  const example = DETECTION_EXAMPLES[family].address;
  return `has "${destination}", which is neither an IPv${family} address nor a host name; use for example "can-reach=${example}"`;
}
