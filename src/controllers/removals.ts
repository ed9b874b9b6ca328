/** Whether a controller may remove much at once: its brake, what it says about it, and the administrator's word. */
import { identity } from "../identity.ts";
import { LARGE_SHARE, largeShares, type Removal, RemovalBrake } from "../ipam/removal-brake.ts";
import { CONFIGURATION_KEY } from "./configuration.ts";
import type { Facts } from "./facts.ts";

/** On the KubeControllersConfiguration `default`: a time, until which nothing is held. */
export const REMOVALS_ALLOWED_UNTIL = `${identity.labelPrefix}removals-allowed-until`;

/** From one look to the next, while anything is remembered. Each compares all records. */
export const LOOK_MILLISECONDS = 1_000;

export interface RemovalsMeans {
  readonly now: () => Date;
  readonly log: (message: string, level: "INFO" | "WARNING") => void;
}

export class Removals {
  private readonly brake = new RemovalBrake();
  private isAllowed = false;
  private lookedAt = Number.NEGATIVE_INFINITY;

  /** `what`: for messages, `addresses`. */
  constructor(
    private readonly what: string,
    private readonly means: RemovalsMeans,
  ) {}

  /** How many are held at the moment. */
  get held(): number {
    return this.isAllowed ? 0 : this.brake.count;
  }

  /** Whether it must look again and again: looks that find nothing count, too. */
  get isRemembering(): boolean {
    return this.brake.isRemembering;
  }

  /** Whether the last look is recent, and found it. */
  isKnown(identity: string, now: number): boolean {
    return now - this.lookedAt < LOOK_MILLISECONDS && this.brake.wasFound(identity);
  }

  look(removal: Removal, facts: Facts): void {
    const before = this.held;
    this.lookedAt = removal.now;
    this.brake.look(removal);
    this.isAllowed = isAllowedBy(facts, this.means.now());
    if (before > 0 || this.held === 0) return;
    const { total, consequences = [] } = removal;
    const others = largeShares(consequences).map((each) => `${each.count} of ${each.total} ${each.what}`);
    const more = others.length === 0 ? "" : `, and with them ${others.join(" and ")},`;
    this.means.log(
      `${this.held} of ${total} ${this.what}${more} are not removed yet, because that is ${LARGE_SHARE} at once; they are if this stays so for 10 minutes, or if annotation ${REMOVALS_ALLOWED_UNTIL} of KubeControllersConfiguration "default" is a later time`,
      "WARNING",
    );
  }

  isHeld(identity: string): boolean {
    return !this.isAllowed && this.brake.isHeld(identity);
  }
}

function isAllowedBy({ stored }: Facts, now: Date): boolean {
  const held = stored.configurations.held(CONFIGURATION_KEY);
  const annotations = held?.kind === "readable" ? held.value.metadata.annotations : undefined;
  return Date.parse(annotations?.[REMOVALS_ALLOWED_UNTIL] ?? "") > now.getTime();
}
