/** Reads routes from BIRD's reply to `show route all`. Pure. */

export interface BirdRoute {
  readonly destination: string;
  /** `unicast`, `blackhole`, `unreachable`. */
  readonly kind: string;
  /** `via 10.0.0.2 on eth0`: several of them if packets are spread over several paths. */
  readonly hops: readonly RouteHop[];
  /** The protocol of BIRD that it came from: the name of a session, `own4`, `direct1`. */
  readonly protocol: string;
  readonly since: string;
  /** Whether BIRD uses it, of all routes with this destination. */
  readonly isBest: boolean;
  /** `BGP`, `static`, `device`, `inherit` (of the kernel). */
  readonly source: string;
  readonly asPath: string;
}

export interface RouteHop {
  /** Absent if the destination is on the link. */
  readonly gateway?: string;
  readonly link: string;
}

/** Destination (empty: that of the line before), kind, protocol and time, whether it is the best. */
const ROUTE = /^(\S*)\s+(unicast|blackhole|unreachable|prohibited)\s+\[(\S+) ([^\]]*?)\](\s+\*)?/;
const HOP = /^\t(?:via (\S+) on|dev) (\S+)/;

export function readRoutes(lines: readonly string[]): readonly BirdRoute[] {
  const routes: { -readonly [Field in keyof BirdRoute]: BirdRoute[Field] }[] = [];
  for (const line of lines) {
    const [, destination = "", kind = "", protocol = "", rest = "", best] = ROUTE.exec(line) ?? [];
    const last = routes.at(-1);
    if (kind !== "") {
      const since = /^[\d:. -]*\d/.exec(rest)?.[0] ?? "";
      const shared = { kind, protocol, since, isBest: best !== undefined };
      routes.push({
        destination: destination || (last?.destination ?? ""),
        hops: [],
        source: "",
        asPath: "",
        ...shared,
      });
    } else if (last !== undefined) {
      const [, gateway, link] = HOP.exec(line) ?? [];
      const [, name, value = ""] = /^\t(Type|BGP\.as_path): ?(.*)$/.exec(line) ?? [];
      if (link !== undefined) last.hops = [...last.hops, { ...(gateway !== undefined && { gateway }), link }];
      if (name === "Type") last.source = value.split(" ")[0] ?? "";
      if (name === "BGP.as_path") last.asPath = value.trim();
    }
  }
  return routes;
}
