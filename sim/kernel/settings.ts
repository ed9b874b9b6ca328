/** The kernel settings (sysctls) that the product reads or writes, with the values of a new namespace and of a new link. */
const IPV4_LINK = { forwarding: "0", proxy_arp: "0", rp_filter: "0", route_localnet: "0" } as const;
const IPV4_NEIGHBOUR = { proxy_delay: "80" } as const;
const IPV6_LINK = {
  forwarding: "0",
  accept_dad: "1",
  accept_ra: "1",
  disable_ipv6: "0",
  proxy_ndp: "0",
} as const;

/** Without those of links. */
export function initialSettings(): Map<string, string> {
  const settings = new Map<string, string>([["net/ipv4/ip_forward", "0"]]);
  for (const place of ["all", "default"]) {
    put(settings, `net/ipv4/conf/${place}`, IPV4_LINK);
    put(settings, `net/ipv6/conf/${place}`, IPV6_LINK);
  }
  put(settings, "net/ipv4/neigh/default", IPV4_NEIGHBOUR);
  settings.set("net/ipv6/conf/all/accept_dad", "0");
  return settings;
}

/** A new link gets the values of `default`. */
export function addLinkSettings(settings: Map<string, string>, link: string): void {
  for (const kind of ["net/ipv4/conf", "net/ipv4/neigh", "net/ipv6/conf"]) {
    for (const [name, value] of [...settings]) {
      if (name.startsWith(`${kind}/default/`)) settings.set(name.replace("/default/", `/${link}/`), value);
    }
  }
  if (link === "lo") settings.set("net/ipv6/conf/lo/accept_dad", "-1");
}

export function removeLinkSettings(settings: Map<string, string>, link: string): void {
  for (const kind of ["net/ipv4/conf", "net/ipv4/neigh", "net/ipv6/conf"]) {
    for (const name of [...settings.keys()]) if (name.startsWith(`${kind}/${link}/`)) settings.delete(name);
  }
}

function put(settings: Map<string, string>, place: string, values: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(values)) settings.set(`${place}/${name}`, value);
}
