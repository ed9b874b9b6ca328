/** Plans of BGP as text: JSON has no large numbers. */
import type { WantedBgp } from "../../src/agent/bgp/bird-keeper.ts";

export function writePlan(wanted: WantedBgp): string {
  return JSON.stringify(wanted, (_, value) => (typeof value === "bigint" ? `${value}n` : value));
}

export function readPlan(text: string): WantedBgp {
  return JSON.parse(text, (_, value) =>
    typeof value === "string" && /^\d+n$/.test(value) ? BigInt(value.slice(0, -1)) : value,
  );
}
