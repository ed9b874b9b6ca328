/**
 * Which of the wanted sessions are established, by what BIRD says now and then. BIRD begins a session again after each failed
 * attempt; here it is down since it was first seen to be, with the last error that was told of it.
 */
import { formatAddress } from "../../ip/address.ts";
import type { DownSession, KnownRouting } from "../../model/routing-state.ts";
import type { BgpSession } from "../../routing/bgp/plan.ts";
import type { SessionStatus } from "../../routing/bird/sessions-status.ts";

type Found = Pick<SessionStatus, "name" | "state" | "since" | "info">;
type Down = Pick<DownSession, "since" | "lastError">;

export class SessionWatch {
  /** By the name of the session. */
  private down: ReadonlyMap<string, Down> = new Map();

  /** `found`: absent if BIRD does not run. */
  look(
    wanted: readonly BgpSession[],
    found: readonly Found[] | undefined,
    now: Date,
  ): Required<Pick<KnownRouting, "sessions" | "down">> {
    const byName = new Map(found?.map((each) => [each.name, each]));
    const isEstablished = ({ name }: BgpSession) => {
      const { state, info = "" } = byName.get(name) ?? {};
      return state === "up" && info.startsWith("Established");
    };
    const failing = wanted.filter((session) => !isEstablished(session));
    const down = new Map(
      failing.map((session) => [session.name, this.describe(session, byName.get(session.name), now)]),
    );
    this.down = down;
    return { sessions: { wanted: wanted.length, established: wanted.length - down.size }, down: [...down.values()] };
  }

  private describe({ name, address, peerAs, from }: BgpSession, found: Found | undefined, now: Date): DownSession {
    const before = this.down.get(name);
    // `Active Socket: Connection refused`; without a session of it, BIRD has refused to take it over.
    const [state = "", ...words] = (found?.info ?? "").split(" ");
    const lastError = words.join(" ") || before?.lastError;
    return {
      ...{ address: formatAddress(address), asNumber: peerAs, peer: from },
      state: state || "not in BIRD",
      since: before?.since ?? beginningOf(found, now).toISOString(),
      ...(lastError === undefined ? {} : { lastError }),
    };
  }
}

/** BIRD writes times of its zone, which is that of the agent. */
function beginningOf(found: Found | undefined, now: Date): Date {
  const since = new Date((found?.since ?? "").replace(" ", "T"));
  return since.getTime() <= now.getTime() ? since : now;
}
