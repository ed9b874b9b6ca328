/** The plan of an upgrade: data only, saved to a file that `apply` reads, and in the cluster with the backups. */
import { PluginError } from "../../errors.ts";
import { isObject } from "../../model/shape.ts";
import { parseJson } from "../../parse-json.ts";
import { quoted } from "../../quote.ts";
import type { Facts } from "./facts.ts";
import { digestOf } from "./object-content.ts";
import type { UpgradeOptions } from "./options.ts";
import type { StepPlan } from "./step.ts";

export interface UpgradePlan {
  readonly format: typeof PLAN_FORMAT;
  /** Names ledger and backups. A new plan for a run that has begun has the same. */
  readonly run: string;
  /** Digest of the plan that it replaces in a run that has begun. */
  readonly continues?: string;
  /** UID of the namespace `kube-system`. */
  readonly cluster?: string;
  readonly madeAt: string;
  readonly facts: Facts;
  readonly options: UpgradeOptions;
  readonly steps: readonly StepPlan[];
  /** The objects of all changes when the plan was made, by their path. */
  readonly observed: Readonly<Record<string, ObservedObject>>;
}

export interface ObservedObject {
  /** Of its content. */
  readonly hash: string;
  /** When each field manager wrote last, by its name. */
  readonly managers: Readonly<Record<string, string>>;
  /** Of the object as it is stored: it is shown otherwise when the definition of its kind changes. */
  readonly resourceVersion?: string;
}

const PLAN_FORMAT = 1;

export function newPlan(contents: Omit<UpgradePlan, "format">): UpgradePlan {
  return { format: PLAN_FORMAT, ...contents };
}

/** Identifies a plan with everything in it. */
export function planDigest(plan: UpgradePlan): string {
  return digestOf(JSON.stringify(plan));
}

export function encodePlan(plan: UpgradePlan): string {
  return `${JSON.stringify({ digest: planDigest(plan), plan }, undefined, 1)}\n`;
}

/** `source`: where the text comes from, for messages. */
export function decodePlan(text: string, source: string): UpgradePlan {
  const file = parsedOrUndefined(text);
  const plan = isObject(file) ? file["plan"] : undefined;
  if (!isObject(file) || !isObject(plan)) throw refused(source, "it is not a plan of an upgrade");
  if (plan["format"] !== PLAN_FORMAT)
    throw refused(source, `its format is ${quoted(plan["format"])}, and not ${PLAN_FORMAT}`);
  const known = plan as unknown as UpgradePlan;
  if (planDigest(known) !== file["digest"]) throw refused(source, "it has been changed since it was made");
  return known;
}

function parsedOrUndefined(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

function refused(source: string, reason: string): PluginError {
  return new PluginError("config-invalid", `Cannot use the plan ${quoted(source)}: ${reason}`, {
    details: "make a new one with upgrade plan",
  });
}
