/**
 * The rates at which a container may send and receive, decoded from the network config.
 *
 *   ingressRate … egressBurst in the config             if any is present, the other sources are ignored
 *   runtimeConfig.bandwidth                             what the runtime read from the pod
 *   runtimeConfig."io.kubernetes.cri.pod-annotations"   for a direction without a rate from the runtime
 *
 * Each direction has one source, so nothing is shaped twice.
 * Directions are seen from the container: ingress is what it receives.
 */
import { isJsonObject, type JsonObject } from "../../cni/json.ts";
import { POD_ANNOTATIONS } from "../../config/capabilities.ts";
import { PluginError } from "../../errors.ts";
import { quoted } from "../../quote.ts";
import { valueInAnyCase } from "../any-case.ts";
import { annotatedRates } from "./annotations.ts";

export interface Rate {
  /** Bits per second. */
  readonly rate: bigint;
  /** Bits; `undefined` if no user chose it. */
  readonly burst: bigint | undefined;
}

/** A direction that is absent is not shaped. */
export interface Bandwidth {
  readonly ingress?: Rate;
  readonly egress?: Rate;
}

const DIRECTIONS = ["ingress", "egress"] as const;
const FIELDS = ["ingressRate", "ingressBurst", "egressRate", "egressBurst"] as const;

/** Existed upstream in 1.5.0 and 1.5.1 only: refused, so that nobody believes they have an effect. */
const UNSUPPORTED = ["shapedSubnets", "unshapedSubnets"] as const;

const SMALLEST_RATE = 8n;
/** A burst in bytes must fit in 32 bits. */
const FIRST_REFUSED_BURST = 0xffffffffn * 8n;

/**
 * Runtimes whose users can set only a rate fill in a very large burst that no user chose:
 * dockershim 2^31 - 1, containerd 2^32 - 1, CRI-O (2^32 - 1) * 8 - 1.
 */
const FIRST_PLACEHOLDER_BURST = 2n ** 31n - 1n;

export function decodeBandwidth(config: JsonObject): Bandwidth {
  for (const field of UNSUPPORTED) refuseField(config, field);
  if (FIELDS.some((field) => isPresent(valueInAnyCase(config, field))))
    return decodeFields(config, "the network config");

  const runtimeConfig = objectAt(config["runtimeConfig"], "runtimeConfig");
  const place = "runtimeConfig.bandwidth";
  const ofRuntime = objectAt(valueInAnyCase(runtimeConfig, "bandwidth"), place);
  const annotations = objectAt(runtimeConfig[POD_ANNOTATIONS], POD_ANNOTATIONS);
  return { ...annotatedBandwidth(annotations), ...withoutPlaceholders(decodeFields(ofRuntime, place)) };
}

function annotatedBandwidth(annotations: JsonObject): Bandwidth {
  const { ingress, egress } = annotatedRates(annotations);
  return {
    ...(ingress === undefined ? {} : { ingress: { rate: ingress, burst: undefined } }),
    ...(egress === undefined ? {} : { egress: { rate: egress, burst: undefined } }),
  };
}

function decodeFields(object: JsonObject, place: string): Bandwidth {
  const bandwidth: { ingress?: Rate; egress?: Rate } = {};
  for (const direction of DIRECTIONS) {
    const rate = unsigned(object, `${direction}Rate`, place);
    const burst = unsigned(object, `${direction}Burst`, place);
    const problem = problemOf(direction, rate, burst);
    if (problem !== undefined) throw new PluginError("config-invalid", `Cannot use ${place}: ${problem}`);
    if (rate > 0n) bandwidth[direction] = { rate, burst };
  }
  return bandwidth;
}

function problemOf(direction: string, rate: bigint, burst: bigint): string | undefined {
  if (rate === 0n && burst === 0n) return undefined;
  if (rate === 0n) return `${direction}Burst is set without ${direction}Rate`;
  if (burst === 0n) return `${direction}Rate is set without ${direction}Burst`;
  if (rate < SMALLEST_RATE) return `${direction}Rate is ${rate}: the minimum is ${SMALLEST_RATE} bits per second`;
  if (burst >= FIRST_REFUSED_BURST)
    return `${direction}Burst is ${burst}: it must be less than ${FIRST_REFUSED_BURST} bits`;
  return undefined;
}

function withoutPlaceholders({ ingress, egress }: Bandwidth): Bandwidth {
  return {
    ...(ingress === undefined ? {} : { ingress: withoutPlaceholder(ingress) }),
    ...(egress === undefined ? {} : { egress: withoutPlaceholder(egress) }),
  };
}

function withoutPlaceholder({ rate, burst }: Rate): Rate {
  return { rate, burst: burst === undefined || burst >= FIRST_PLACEHOLDER_BURST ? undefined : burst };
}

function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function objectAt(given: unknown, place: string): JsonObject {
  const value = given ?? {};
  if (isJsonObject(value)) return value;
  throw new PluginError("decode-failure", `Cannot read ${place}: it is ${quoted(value)}, not an object`);
}

function unsigned(object: JsonObject, field: string, place: string): bigint {
  const value = valueInAnyCase(object, field) ?? 0;
  if (typeof value === "number" && Number.isInteger(value) && value >= 0 && value < 2 ** 64) return BigInt(value);
  const state = `${field} is ${quoted(value)}, not a whole number from 0 to 2^64 - 1`;
  throw new PluginError("decode-failure", `Cannot read ${place}: ${state}`);
}

function refuseField(config: JsonObject, field: string): void {
  const value = valueInAnyCase(config, field) ?? [];
  if (Array.isArray(value) && value.length === 0) return;
  const state = `${field} is ${quoted(value)}, but shaping by subnet is not supported; remove the field`;
  throw new PluginError("field-unsupported", `Cannot use the network config: ${state}`);
}
