/** The network config of a call. */
import type { CniCall } from "../cni/call.ts";
import { rememberConfigs } from "../cni/remembered-config.ts";
import type { Lifetime } from "../lifetime.ts";
import { requireNetworkConfig } from "./decode.ts";

const requireRemembered = rememberConfigs(requireNetworkConfig);

/** A process that stays decodes only once what comes again and again. */
export function networkConfigOf(
  { config, cniVersion }: Pick<CniCall, "config" | "cniVersion">,
  lifetime: Lifetime,
): ReturnType<typeof requireNetworkConfig> {
  return lifetime === "call" ? requireRemembered(config, cniVersion) : requireNetworkConfig(config);
}
