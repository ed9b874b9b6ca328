/** Says which pods have no policy because their interface is not found: it is not noticed otherwise. */
import type { UnplacedEndpoint } from "../../policy/compile/unnamed-interfaces.ts";

/** A pod that joins is known before its interface, or after. */
const PATIENCE_MILLISECONDS = 2_000;

export interface UnplacedMeans {
  readonly unplaced: () => readonly UnplacedEndpoint[];
  /** How names of workloads' interfaces begin. */
  readonly prefixes: () => readonly string[];
  readonly report: (message: string) => void;
  /** Resolves early if the signal is aborted. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly signal: AbortSignal;
}

/** Each is reported once for as long as it lasts. Resolves when the signal is aborted. */
export async function reportUnplaced({ unplaced, prefixes, report, wait, signal }: UnplacedMeans): Promise<void> {
  let seen: ReadonlySet<string> = new Set();
  const reported = new Set<string>();
  while (!signal.aborted) {
    await wait(PATIENCE_MILLISECONDS, signal);
    if (signal.aborted) return;
    const now = new Set(unplaced().map((each) => describeUnplaced(each, prefixes())));
    for (const message of reported) if (!now.has(message)) reported.delete(message);
    for (const message of now) {
      if (!seen.has(message) || reported.has(message)) continue;
      reported.add(message);
      report(message);
    }
    seen = now;
  }
}

export function describeUnplaced({ endpoint, addresses, link }: UnplacedEndpoint, prefixes: readonly string[]): string {
  const { metadata, spec } = endpoint;
  const pod = `Pod ${metadata.namespace}/${spec.pod ?? metadata.name} (${addresses.join(", ")})`;
  const known = prefixes.map((prefix) => `"${prefix}"`).join(" or ");
  if (link === undefined) return `${pod} has no policy: no route of this host leads to an interface of it`;
  return `${pod} has no policy: packets to it leave by the interface "${link}", whose name does not begin with ${known}; set "interfacePrefix" in the NodeAgentConfiguration if it belongs to this pod alone`;
}
