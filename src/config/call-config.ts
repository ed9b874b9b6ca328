/** The network config of a call. */
import type { CniCall } from "../cni/call.ts";
import type { ConfigDecoder } from "../cni/remembered-config.ts";
import { requireNetworkConfig } from "./decode.ts";

type Usable = ReturnType<typeof requireNetworkConfig>;

/** Where a config that comes again and again may be decoded from memory. */
interface ConfigHost {
  configDecoder(decode: ConfigDecoder<Usable>): ConfigDecoder<Usable>;
}

export function networkConfigOf(
  { config, cniVersion }: Pick<CniCall, "config" | "cniVersion">,
  host: ConfigHost,
): Usable {
  return host.configDecoder(requireNetworkConfig)(config, cniVersion);
}
