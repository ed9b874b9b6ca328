/**
 * Which capabilities of a runtime (`capabilities` in an entry, then `runtimeConfig` in a call) our plugin uses. Pure.
 */
import { identity } from "../identity.ts";
import { shortName } from "../quote.ts";

/** Under which containerd and CRI-O pass the annotations of a pod on. */
export const POD_ANNOTATIONS = "io.kubernetes.cri.pod-annotations";

/** Capabilities that our plugin uses, and those that only describe the container. */
const USABLE: ReadonlySet<string> = new Set(["ips", "mac", "cgroupPath", POD_ANNOTATIONS]);

/** What to change if one of these is declared for our plugin. */
const REMEDIES: Readonly<Record<string, string>> = {
  portMappings: 'declare the capability "portMappings" in the entry of "portmap", and remove it from this one',
  bandwidth: 'declare the capability "bandwidth" in the entry of "bandwidth", and remove it from this one',
  ipRanges: `remove the capability "ipRanges": ranges belong to "host-local", "${identity.ipamType}" uses pools`,
};

/** What to do about a capability that our plugin cannot use; `undefined` if it can. */
export function capabilityRemedy(name: string, ipamType: string): string | undefined {
  if (USABLE.has(name) || USABLE.has(name.toLowerCase()) || (name === "ipRanges" && ipamType !== identity.ipamType))
    return undefined;
  return REMEDIES[name] ?? `remove the capability "${shortName(name)}" from the entry of "${identity.product}"`;
}
