/**
 * Gives an owner its ports although something is in the way: no table yet, the
 * owner's own past, somebody else. Looks at everything, plans, and tries under
 * the condition that nothing changed since the look.
 */
import { PluginError } from "../../errors.ts";
import type { NetlinkSocket } from "../../linux/netlink-socket.ts";
import { readGeneration, tryCommit } from "../../linux/nftables/commit.ts";
import type { Claim } from "./claim.ts";
import type { Holding } from "./holding.ts";
import { planTake } from "./plan.ts";
import { forgetSingleAddresses, throwUnexpected } from "./refusals.ts";
import { readSituation } from "./situation.ts";

const ATTEMPTS = 50;

/** Answers the ports that another interface of the same container keeps. */
export function contestPorts(socket: NetlinkSocket, holdings: readonly Holding[]): readonly Claim[] {
  for (let tries = 0; tries < ATTEMPTS; tries++) {
    const generation = readGeneration(socket);
    const plans = holdings.map((holding) => planTake(holding, readSituation(socket, holding)));
    const refusals = tryCommit(
      socket,
      plans.flatMap(({ changes }) => changes),
      generation,
    );
    throwUnexpected(refusals);
    if (refusals.length > 0) continue;
    for (const { released } of plans) forgetSingleAddresses(socket, released);
    return plans.flatMap(({ leftToSibling }) => leftToSibling);
  }
  throw new PluginError("try-again-later", "Cannot map host ports: the ruleset keeps changing");
}
