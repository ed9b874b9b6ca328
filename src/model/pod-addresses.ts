/** The addresses of a pod: those that the plugin recorded in annotations, and those that the kubelet reports. Pure. */
import { addressBits, parseAddress } from "../ip/address.ts";
import { formatPrefix, parseInterfaceAddress, singlePrefix } from "../ip/prefix.ts";
import { recordedAnnotation } from "./recorded-annotations.ts";
import { isObject } from "./shape.ts";

export const POD_IP = recordedAnnotation("podIP");
export const POD_IPS = recordedAnnotation("podIPs");

/**
 * `undefined` if the plugin has never recorded any; none after a DEL, whatever the kubelet still reports. Users can write these
 * annotations: the texts may be anything.
 */
export function recordedAddresses(annotations: Readonly<Record<string, string>>): readonly string[] | undefined {
  const { [POD_IPS]: all, [POD_IP]: first } = annotations;
  if (all === undefined && first === undefined) return undefined;
  return (all || first || "").split(",").filter((text) => text !== "");
}

/** `10.0.0.5/32`, however it is written; `undefined` if the text is not a single address. */
export function singleNetwork(text: string): string | undefined {
  const { address, length } = parseInterfaceAddress(text) ?? {};
  if (address === undefined || length !== addressBits(address.family)) return undefined;
  return formatPrefix(singlePrefix(address));
}

/** By the kubelet, in the status of the pod. */
export function reportedAddresses({ podIPs, podIP }: Readonly<Record<string, unknown>>): readonly string[] {
  const listed = Array.isArray(podIPs) ? podIPs.map((each) => (isObject(each) ? each["ip"] : undefined)) : [];
  return (listed.length > 0 ? listed : [podIP]).flatMap((text) => {
    const address = typeof text === "string" ? parseAddress(text) : undefined;
    return address === undefined ? [] : formatPrefix(singlePrefix(address));
  });
}
