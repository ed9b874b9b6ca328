/** Writing a kernel setting, with what the kernel does when it changes. */
import type { Namespace } from "./namespace.ts";
import { configureIpv6, restorePrefixRoutes } from "./rtnetlink/ipv6-addresses.ts";
import { stopIpv6 } from "./rtnetlink/link-state.ts";

const LINK_SETTING = /^net\/(ipv[46])\/conf\/(.+)\/([^/]+)$/;

export function writeSetting(namespace: Namespace, name: string, value: string): "written" | "absent" {
  const { sysctls } = namespace;
  const before = sysctls.get(name);
  if (before === undefined) return "absent";
  if (before === value) return "written";
  namespace.changes += 1;
  sysctls.set(name, value);
  if (name === "net/ipv4/ip_forward" || name === "net/ipv4/conf/all/forwarding") setForwarding4(sysctls, value);
  const [, family, place = "", setting] = LINK_SETTING.exec(name) ?? [];
  if (family !== "ipv6") return "written";
  if (place === "all" && (setting === "forwarding" || setting === "disable_ipv6")) {
    for (const each of [...sysctls.keys()]) {
      if (each.startsWith("net/ipv6/conf/") && each.endsWith(`/${setting}`) && each !== name)
        writeSetting(namespace, each, value);
    }
  }
  if (setting === "disable_ipv6") switchIpv6(namespace, place, value);
  return "written";
}

function setForwarding4(sysctls: Map<string, string>, value: string): void {
  sysctls.set("net/ipv4/ip_forward", value);
  for (const name of [...sysctls.keys()]) {
    if (name.startsWith("net/ipv4/conf/") && name.endsWith("/forwarding")) sysctls.set(name, value);
  }
}

function switchIpv6(namespace: Namespace, place: string, value: string): void {
  const link = namespace.linkNamed(place);
  if (link === undefined) return;
  if (value !== "0") stopIpv6(namespace, link);
  else if (link.isUp) {
    restorePrefixRoutes(namespace, link);
    link.isIpv6Ready = link.isActive;
    if (link.isIpv6Ready) configureIpv6(namespace, link);
  }
}
