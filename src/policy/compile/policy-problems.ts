/** What is not enforced as its author wants it, by resource. */
import { titleInKey } from "../../model/keys.ts";
import type { PolicyChanges, PolicyValues } from "../inputs.ts";

/** Why something is denied that its author may want to be allowed, or is not as its author wants it. */
export interface PolicyProblem {
  /** `NAMESPACE/NAME` of a policy or a network set; the name of any other resource, or of a namespace. */
  readonly title: string;
  readonly reason: string;
  readonly effect: ProblemEffect;
}

/** In words that follow the title. */
export type ProblemEffect = (typeof EFFECT)[keyof typeof EFFECT];

export const EFFECT = {
  denies: "denies more than it says",
  kept: "stays as it was when it could be read; if it never could, it has no effect",
  allowsNothing: "stays as it was when it could be read; if it never could, it allows nothing",
  unknown: "is unknown, so that nothing passes its interface",
  exempt: "is not followed for all interfaces",
  dropped: "is Drop on this node",
  closed: "stays as it was when it could be read; if it never could, its policies deny everything",
  near: "is a namespace near its limit",
} as const;

type AnyChange = PolicyChanges[keyof PolicyValues][number];

export class PolicyProblems {
  /** By the key of the resource. */
  private readonly byKey = new Map<string, PolicyProblem>();

  get all(): readonly PolicyProblem[] {
    return [...this.byKey.values()];
  }

  /** By the keys of the resources. */
  get byKeys(): ReadonlyMap<string, PolicyProblem> {
    return this.byKey;
  }

  note(key: string, reason: string | undefined, effect: ProblemEffect = EFFECT.denies): void {
    if (reason === undefined) this.byKey.delete(key);
    else this.byKey.set(key, { title: titleInKey(key), reason, effect });
  }

  noteUnreadable(change: AnyChange, effect: ProblemEffect): void {
    this.note(change.key, change.kind === "unreadable" ? change.failure.message : undefined, effect);
  }

  /** What cannot be read any more stays as it was: to forget it could open what it closed. */
  isKeptUnreadable(change: AnyChange, effect: ProblemEffect = EFFECT.kept): boolean {
    this.noteUnreadable(change, effect);
    return change.kind === "unreadable";
  }
}
