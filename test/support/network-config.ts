/** Short calls of the decoder, for the tests of the network config. */
import { decodeNetworkConfig, requireNetworkConfig } from "../../src/config/decode.ts";
import type { NetworkConfig } from "../../src/config/network-config.ts";
import { pathText } from "../../src/config/problem.ts";
import { identity } from "../../src/identity.ts";

export type Json = Readonly<Record<string, unknown>>;

export const MINIMAL: Json = {
  name: "pods",
  cniVersion: "1.0.0",
  type: identity.product,
  ipam: { type: identity.ipamType },
};

export function decode(more: Json): NetworkConfig {
  return requireNetworkConfig({ ...MINIMAL, ...more }).config;
}

export function problemsOf(raw: unknown): Readonly<Record<string, string>> {
  const decoded = decodeNetworkConfig(raw);
  if (decoded.ok) return {};
  return Object.fromEntries(decoded.problems.map(({ path, message }) => [pathText(path), message]));
}

/** The minimal config with one field set: `ipam.type` goes into the ipam object. */
export function withField(field: string, value: unknown, beside: Json = {}): Json {
  const [outer = "", inner] = field.split(".");
  if (inner === undefined) return { ...MINIMAL, ...beside, [outer]: value };
  const base = outer === "ipam" ? { type: identity.ipamType } : {};
  return { ...MINIMAL, [outer]: { ...base, ...beside, [inner]: value } };
}
