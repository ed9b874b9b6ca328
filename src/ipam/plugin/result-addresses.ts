import type { CniResult } from "../../cni/result.ts";

/** The addresses of a result, without their prefix lengths. */
export function resultAddresses(result: CniResult | undefined): readonly string[] {
  return (result?.ips ?? []).map(({ address }) => address.split("/")[0] ?? "");
}
