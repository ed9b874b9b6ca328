/**
 * BIRD on the router, configured by hand, as somebody else's router: it speaks BGP with a password with every node, announces
 * networks, and puts the routes that it learns into its kernel.
 */
import { existsSync } from "node:fs";
import { pollUntil } from "../support/poll.ts";
import { birdRoutes } from "./bird-routes.ts";
import { gatewaysOf, type RoutedNetwork } from "./routed-network.ts";

export const FOREIGN_AS = 65_001;
const NODE_AS = 64_512;
export const PASSWORD = "a word for the sessions";
/** IPv4, IPv6. The nodes are told to refuse the second kind. */
export const ANNOUNCED = ["192.0.2.0/25", "2001:db8:a::/64"] as const;
export const REFUSED = ["192.0.2.128/25", "2001:db8:b::/64"] as const;

export interface ForeignRouter {
  /** What BIRD itself says. */
  ask(command: string): Promise<string>;
  /** The routes to pods that it has learned, in its kernel. */
  learned(): Promise<string>;
}

export async function startForeignRouter({ router, nodes }: RoutedNetwork): Promise<ForeignRouter> {
  const [config, socket] = [`${router.directory}/foreign.conf`, `${router.directory}/foreign.ctl`];
  const sessions = nodes.flatMap(({ name, subnet, addresses }) =>
    addresses.map((address, index) => sessionOf({ name, address, own: gatewaysOf(subnet)[index] ?? "" })),
  );
  router.writeFile(config, [COMMON, ...sessions].join("\n"));
  router.start(["bird", "-f", "-c", config, "-s", socket, "-P", `${router.directory}/foreign.pid`], "foreign.log");
  await pollUntil(() => existsSync(router.view(socket)), "BIRD of the router");
  return {
    ask: (command) => router.must(["birdc", "-s", socket, ...command.split(" ")]),
    learned: () => birdRoutes(router),
  };
}

const statics = (networks: readonly string[]) => networks.map((network) => `route ${network} blackhole;`).join(" ");

const COMMON = `
router id 10.1.0.1;
protocol device { scan time 2; }
protocol static announced4 { ipv4; ${statics([ANNOUNCED[0], REFUSED[0]])} }
protocol static announced6 { ipv6; ${statics([ANNOUNCED[1], REFUSED[1]])} }
protocol kernel { ipv4 { import none; export where source = RTS_BGP; }; }
protocol kernel { ipv6 { import none; export where source = RTS_BGP; }; }`;

function sessionOf({ name, address, own }: { readonly name: string; readonly address: string; readonly own: string }) {
  const family = address.includes(":") ? 6 : 4;
  return `
protocol bgp ${name.replace("-", "_")}_${family} {
  local ${own} as ${FOREIGN_AS};
  neighbor ${address} as ${NODE_AS};
  password "${PASSWORD}";
  connect retry time 1;
  error wait time 1, 2;
  ipv${family} { import all; export where source = RTS_STATIC; };
}`;
}
