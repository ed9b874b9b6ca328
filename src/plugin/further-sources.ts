/**
 * Sources that a pod may use beside its own addresses (annotation
 * `allowedSourcePrefixes`). Loaded only for pods that have some.
 *
 * For IPv4 the reverse path filter of the link is off (wiring-plan.ts): the guard
 * table alone decides, so it must be in place before the link is up.
 */
import { PluginError } from "../errors.ts";
import { type AllowedSource, changesForLinks, type LinkSources } from "../firewall/allowed-sources.ts";
import { allowSources, forgetSources, readAllowedSources } from "../firewall/source-prefixes.ts";
import { identity } from "../identity.ts";
import { formatPrefix, type Prefix } from "../ip/prefix.ts";
import { formatRange } from "../ip/range.ts";
import type { Sysctls } from "../linux/host-kernel.ts";
import type { NetfilterAccess } from "../linux/netfilter-access.ts";
import type { Annotated } from "./annotations.ts";
import type { PluginHost } from "./plugin-host.ts";

const OF_ALL_LINKS = "net/ipv4/conf/all/rp_filter";
const STRICT = "1";
const LOOSE = "2";
const WITHOUT_CLUSTER = `has no effect until ${identity.nodeAgent} has written the addresses of pools and nodes, which are excluded`;

/** For ADD. */
export interface FurtherSources {
  allow(link: LinkSources): Promise<void>;
  /** After the link was removed. */
  forget(): Promise<void>;
}

/** Throws if the host would drop packets from these sources. `undefined`: a repeated ADD withdraws those of an earlier one. */
export function furtherSources(
  annotated: Annotated<readonly Prefix[]> | undefined,
  host: Pick<PluginHost, "kernel" | "netfilter">,
  warn: (message: string) => void,
): FurtherSources {
  if (annotated !== undefined) requireNoStrictFilter(annotated, host.kernel, warn);
  return {
    async allow(link) {
      const isInEffect = await allowSources(host.netfilter, link);
      if (!isInEffect && annotated !== undefined) warn(`${annotated.place} ${WITHOUT_CLUSTER}`);
    },
    forget: () => forgetSources(host, warn),
  };
}

/** The kernel uses the larger value of the link and of all links: strict for all would drop what is allowed here. */
function requireNoStrictFilter(
  { value, place }: Annotated<readonly Prefix[]>,
  kernel: Sysctls,
  warn: (message: string) => void,
): void {
  const prefix = value.find(({ network }) => network.family === 4);
  if (prefix === undefined) return;
  const setting = kernel.readSysctl(OF_ALL_LINKS);
  const name = OF_ALL_LINKS.replaceAll("/", ".");
  if (setting === STRICT) {
    throw new PluginError(
      "kernel-refused",
      `Cannot use ${place}: "${formatPrefix(prefix)}": sysctl ${name} is 1: the kernel drops packets from sources whose route is elsewhere`,
      { details: `run: sysctl -w ${name}=0 (each link then uses its own setting)` },
    );
  }
  if (setting === LOOSE) warn(`${place}: sysctl ${name} is 2: the kernel drops packets from sources without any route`);
}

/** For CHECK. */
export async function sourceDifferences(netfilter: NetfilterAccess, link: LinkSources): Promise<readonly string[]> {
  const { removed, added } = changesForLinks(await netfilter.withSocket(readAllowedSources), [link]);
  const described = (sources: readonly AllowedSource[], state: string) =>
    sources.map(({ range }) => `host interface "${link.linkName}" ${state} source ${formatRange(range)}`);
  return [...described(added, "does not allow"), ...described(removed, "also allows")];
}
