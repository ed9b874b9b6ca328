/**
 * What the label of a connection says: at which points which rule accepted it. Decisions are shared by all records with the same
 * label, so that a record costs no reading of labels. Pure.
 */
import type { FlowDecision } from "../../../flows/flow-record.ts";
import { readLabel } from "../../../flows/rule-label.ts";
import type { Direction } from "../../../policy/effective-rule.ts";
import { POINTS, type Point } from "../../../policy/point.ts";

export interface LabelMeaning {
  /** Empty: no rule has written into the label. */
  readonly decisions: readonly FlowDecision[];
  readonly numbers: readonly number[];
  readonly isIngress: boolean;
  readonly isEgress: boolean;
  /** A rule of a host endpoint decided. */
  readonly hasHostPoint: boolean;
  /** The agent has not told what a number stands for, or not yet. */
  readonly isIncomplete: boolean;
}

/** More different labels than rules let through at the same time. */
const MOST_MEANINGS = 10_000;
const DIRECTION: Readonly<Record<Point, Direction>> = {
  "host in": "ingress",
  "workload egress": "egress",
  "workload ingress": "ingress",
  "host out": "egress",
};

export function directionOf(point: Point): Direction {
  return DIRECTION[point];
}

export class RuleDecisions {
  readonly #comments = new Map<number, string>();
  #withRequests: ReadonlySet<number> = new Set();
  #meanings = new Map<string, LabelMeaning>();

  learn(rules: readonly (readonly [number: number, comment: string])[]): void {
    for (const [number, comment] of rules) this.#comments.set(number, comment);
    this.#meanings = new Map();
  }

  forget(numbers: readonly number[]): void {
    for (const number of numbers) this.#comments.delete(number);
    this.#meanings = new Map();
  }

  /** These accept for a sidecar, which decides about each request. */
  learnWithRequests(numbers: readonly number[]): void {
    this.#withRequests = new Set(numbers);
    this.#meanings = new Map();
  }

  /** `label`: four words. */
  of(label: Uint32Array): LabelMeaning {
    const key = `${label[1]} ${label[2]} ${label[3]}`;
    const known = this.#meanings.get(key);
    if (known !== undefined) return known;
    const meaning = this.#read(new Uint8Array(label.buffer, label.byteOffset, label.byteLength));
    if (this.#meanings.size >= MOST_MEANINGS) this.#meanings = new Map();
    this.#meanings.set(key, meaning);
    return meaning;
  }

  #read(label: Uint8Array): LabelMeaning {
    const decisions: FlowDecision[] = [];
    const numbers: number[] = [];
    for (const point of POINTS) {
      const field = readLabel(label, point);
      if (field.kind === "rule") {
        numbers.push(field.number);
        decisions.push(this.#decision(point, field.number));
      } else if (field.kind === "several") decisions.push({ point, verdict: "allow", unknown: "several rules" });
    }
    const points = decisions.map(({ point }) => point);
    return {
      decisions,
      numbers,
      isIngress: points.some((point) => DIRECTION[point] === "ingress"),
      isEgress: points.some((point) => DIRECTION[point] === "egress"),
      hasHostPoint: points.some((point) => point === "host in" || point === "host out"),
      isIncomplete: decisions.some(({ unknown }) => unknown === "rule forgotten"),
    };
  }

  #decision(point: Point, number: number): FlowDecision {
    const rule = this.#comments.get(number);
    if (rule === undefined) return { point, verdict: "allow", unknown: "rule forgotten" };
    const asksSidecar = point === "workload ingress" && this.#withRequests.has(number);
    return { point, verdict: "allow", rule, ...(asksSidecar ? { requestsBySidecar: true } : {}) };
  }
}
