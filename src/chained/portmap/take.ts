/**
 * Gives an owner its ports in the kernel, all or none.
 *
 * First as if nothing were in the way: one batch, no look. Where the kernel
 * refuses, looks at everything, plans, and tries again under the condition that
 * nothing changed since the look.
 */
import { PluginError } from "../../errors.ts";
import { isKernelError } from "../../linux/kernel-error.ts";
import type { NetlinkSocket } from "../../linux/netlink-socket.ts";
import { type Refusal, readGeneration, tryCommit } from "../../linux/nftables/commit.ts";
import type { NftChange } from "../../linux/nftables/ruleset.ts";
import { takeChanges, uncountChanges } from "./changes.ts";
import type { Claim } from "./claim.ts";
import type { Holding } from "./holding.ts";
import { planTake } from "./plan.ts";
import { readSituation } from "./situation.ts";
import { needsNeighbourRule } from "./table.ts";
import { readBase } from "./view.ts";

const ATTEMPTS = 50;

/** Answers the ports that another interface of the same container keeps. */
export function takePorts(socket: NetlinkSocket, holdings: readonly Holding[]): readonly Claim[] {
  if (takeAtOnce(socket, holdings)) return [];
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

/** After ports of single addresses were given up: the note that they were held goes with the last of them. */
export function forgetSingleAddresses(socket: NetlinkSocket, claims: readonly Claim[]): void {
  // Refused while another address of the port is held, or when nothing is left to forget.
  for (const claim of claims) tryCommit(socket, uncountChanges(claim));
}

function takeAtOnce(socket: NetlinkSocket, holdings: readonly Holding[]): boolean {
  const changes: NftChange[] = [];
  for (const holding of holdings) {
    if (!isPrepared(socket, holding)) return false;
    changes.push(...takeChanges(holding));
  }
  const refusals = tryCommit(socket, changes);
  throwUnexpected(refusals);
  return refusals.length === 0;
}

function isPrepared(socket: NetlinkSocket, { family, records }: Holding): boolean {
  const lengths: number[] = [];
  for (const record of records) {
    if (record.kind === "source" && needsNeighbourRule(family, record.hidden.length))
      lengths.push(record.hidden.length);
  }
  const base = readBase(socket, family, lengths);
  return base.isIntact && base.neighbourLengths.length === lengths.length;
}

/** EEXIST: taken. ENOENT: no table. EBUSY: a port of single addresses came back. ERESTART: changed since the look. */
export function throwUnexpected(refusals: readonly Refusal[]): void {
  for (const { error } of refusals) if (!isKernelError(error, "EEXIST", "ENOENT", "EBUSY", "ERESTART")) throw error;
}
