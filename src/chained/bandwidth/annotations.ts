/**
 * The rates in a pod's annotations. Runtimes usually read them and pass them on as
 * the `bandwidth` capability; this file is for a runtime that passes only the
 * annotations themselves.
 */
import type { JsonObject } from "../../cni/json.ts";
import { PluginError } from "../../errors.ts";
import { ORCHESTRATOR_NAMES } from "../../identity.ts";
import { quoted } from "../../quote.ts";
import { parseBandwidthQuantity } from "./quantity.ts";

/** Bits per second; a direction without annotation is absent. */
export interface AnnotatedRates {
  readonly ingress: bigint | undefined;
  readonly egress: bigint | undefined;
}

export function annotatedRates(annotations: JsonObject): AnnotatedRates {
  return { ingress: rateOf(annotations, "ingress"), egress: rateOf(annotations, "egress") };
}

/** The annotation may use either name of the orchestrator, or both if they have the same value. */
function rateOf(annotations: JsonObject, direction: "ingress" | "egress"): bigint | undefined {
  let found: { readonly key: string; readonly rate: bigint } | undefined;
  for (const orchestrator of ORCHESTRATOR_NAMES) {
    const key = `${orchestrator}.io/${direction}-bandwidth`;
    const text = annotations[key];
    if (text === undefined || text === null) continue;
    const rate = parseBandwidthQuantity(key, String(text));
    if (found !== undefined && found.rate !== rate) {
      const state = `it contradicts "${found.key}", which is ${found.rate} bits per second; set only one of them`;
      throw new PluginError("config-invalid", `Cannot use annotation "${key}": ${quoted(text)}: ${state}`);
    }
    found = { key, rate };
  }
  return found?.rate;
}
