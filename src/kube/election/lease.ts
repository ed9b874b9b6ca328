/**
 * The Lease of coordination.k8s.io/v1 that the leader holds: what to do with it. Pure.
 *
 * Clocks of machines differ, so the times in a lease are not compared with ours: a lease has expired if it has not changed
 * for its duration while we looked on.
 */
import { isObject } from "../../model/shape.ts";

export interface LeaseTimes {
  /** Others wait this long after the last renewal that they saw. */
  readonly durationSeconds: number;
  /** A leader that could not renew for this long stops writing. Shorter than the duration. */
  readonly renewDeadlineMilliseconds: number;
  readonly retryMilliseconds: number;
}

export const LEASE_TIMES: LeaseTimes = {
  durationSeconds: 15,
  renewDeadlineMilliseconds: 10_000,
  retryMilliseconds: 2_000,
};

/** The object as the API has it. */
export interface Lease {
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly spec: LeaseSpec;
}

export interface LeaseSpec {
  readonly holderIdentity?: string;
  readonly leaseDurationSeconds?: number;
  readonly acquireTime?: string;
  readonly renewTime?: string;
  readonly leaseTransitions?: number;
}

/** A lease, and when this process saw its present text for the first time, in milliseconds. */
export interface SeenLease {
  readonly lease: Lease;
  readonly since: number;
}

export interface Claimant {
  /** Unique: a process that was restarted is another one. */
  readonly identity: string;
  readonly now: Date;
  /** Milliseconds that never go back. */
  readonly elapsed: number;
}

/** The spec to write in order to acquire or renew the lease; `undefined` if another holds it. */
export function claimOf(seen: SeenLease | undefined, { identity, now, elapsed }: Claimant): LeaseSpec | undefined {
  const time = microTime(now);
  const held = seen?.lease.spec ?? {};
  const common = { holderIdentity: identity, leaseDurationSeconds: LEASE_TIMES.durationSeconds, renewTime: time };
  if (held.holderIdentity === identity) return { ...held, ...common };
  if (seen !== undefined && isHeld(seen, elapsed)) return undefined;
  const transitions = held.leaseTransitions ?? 0;
  return { ...common, acquireTime: time, leaseTransitions: seen === undefined ? 0 : transitions + 1 };
}

function isHeld({ lease, since }: SeenLease, elapsed: number): boolean {
  const { holderIdentity = "", leaseDurationSeconds = LEASE_TIMES.durationSeconds } = lease.spec;
  return holderIdentity !== "" && elapsed - since < leaseDurationSeconds * 1000;
}

/** A leader that stops gives the lease back: the next one need not wait. */
export function releaseOf({ spec }: Lease, identity: string, now: Date): LeaseSpec | undefined {
  if (spec.holderIdentity !== identity) return undefined;
  return { ...spec, holderIdentity: "", leaseDurationSeconds: 1, renewTime: microTime(now) };
}

export function leaseIn(object: unknown): Lease {
  const { metadata, spec } = isObject(object) ? object : {};
  return { metadata: isObject(metadata) ? metadata : {}, spec: isObject(spec) ? (spec as LeaseSpec) : {} };
}

/** As the API writes it: with six digits. */
function microTime(time: Date): string {
  return time.toISOString().replace("Z", "000Z");
}
