/** A plan as a person reads it: what will happen, why, what cannot be undone, and how long it takes. Pure. */
import { counted } from "../../counted.ts";
import { headLines } from "./plan-head.ts";
import type { PlannedChange, Step, StepPlan } from "./step.ts";
import type { UpgradePlan } from "./upgrade-plan.ts";
import { durationText } from "./wording.ts";

export interface PlanTextOptions {
  /** Every line of every difference. */
  readonly isFull: boolean;
  bold(text: string): string;
  red(text: string): string;
  green(text: string): string;
  yellow(text: string): string;
}

/** Without `isFull`. */
const SHOWN_CHANGES = 20;
const SHOWN_DIFF_LINES = 16;
const SHOWN_VALUE = 80;
/** So many changes of one kind, of which nothing else is shown, are one line. */
const GROUPED = 3;

export function planText(plan: UpgradePlan, steps: readonly Step[], options: PlanTextOptions): string {
  const texts = plan.steps.map((each, index) => stepText(each, steps, index + 1, options));
  return [...headLines(plan, steps, options), "", ...texts, ...obstacleLines(plan, options)].join("\n");
}

function stepText(plan: StepPlan, steps: readonly Step[], number: number, options: PlanTextOptions): string {
  const step = steps.find(({ name }) => name === plan.step);
  const rule = step === undefined ? "" : `rule ${step.rule} of the upgrade procedure, `;
  const changes = groupsOf(plan.changes, options).map((group) => groupLines(group, options));
  const shown = options.isFull ? changes : changes.slice(0, SHOWN_CHANGES);
  const hidden = changes.length - shown.length;
  return [
    options.bold(`${number}. ${step?.title ?? plan.step}`),
    `   (${plan.step}, ${rule}${durationText(plan.estimatedSeconds)})`,
    ...(step === undefined ? [] : [`   Why: ${step.why}`]),
    ...shown.flat(),
    ...(hidden === 0 ? [] : [`   … and ${counted(hidden, "more change")}: --full shows them`]),
    ...plan.notes.map((note) => `   Note: ${note}`),
    ...(plan.cannotBeUndone === undefined ? [] : [`   ${options.yellow("Cannot be undone:")} ${plan.cannotBeUndone}`]),
    "",
  ].join("\n");
}

/** Changes in their order; neighbours that are shown alike are together. */
function groupsOf(changes: readonly PlannedChange[], options: PlanTextOptions): readonly (readonly PlannedChange[])[] {
  const groups: PlannedChange[][] = [];
  for (const change of changes) {
    const group = groups.at(-1);
    if (group?.every((each) => isLike(each, change, options))) group.push(change);
    else groups.push([change]);
  }
  return groups.flatMap((group) => (group.length < GROUPED ? group.map((change) => [change]) : [group]));
}

function isLike(one: PlannedChange, other: PlannedChange, options: PlanTextOptions): boolean {
  const isOneLine = [one, other].every((change) => changeLines(change, options).length === 1);
  const isSame = one.action === other.action && one.isUnverified === other.isUnverified;
  return isOneLine && isSame && splitName(one).kind === splitName(other).kind;
}

function groupLines(group: readonly PlannedChange[], options: PlanTextOptions): readonly string[] {
  const [first] = group;
  if (first === undefined || group.length === 1) return group.flatMap((change) => changeLines(change, options));
  const names = group.map((change) => splitName(change).name).join(", ");
  return [`   - ${first.action} ${group.length} × ${splitName(first).kind}${unverifiedText(first)}: ${names}`];
}

/** `DaemonSet kube-system/vendor-node` */
function splitName({ what }: PlannedChange): { readonly kind: string; readonly name: string } {
  const space = what.indexOf(" ");
  return { kind: what.slice(0, space), name: what.slice(space + 1) };
}

function unverifiedText({ isUnverified }: PlannedChange): string {
  return isUnverified ? " (not tried: its kind or namespace comes with an earlier step)" : "";
}

function changeLines(change: PlannedChange, options: PlanTextOptions): readonly string[] {
  const shortened = (value: string) =>
    options.isFull || value.length <= SHOWN_VALUE ? value : `${value.slice(0, SHOWN_VALUE)}…`;
  return [
    `   - ${change.action} ${change.what}${unverifiedText(change)}`,
    ...(change.conflicts ?? []).map(
      ({ field, manager, value }) => `       takes ${field} from "${manager}", which has set ${shortened(value)}`,
    ),
    ...diffLines(change, options).map((line) => `       ${line}`),
  ];
}

/** A new object is all additions: its lines are shown only in full. */
function diffLines({ diff = "", action }: PlannedChange, options: PlanTextOptions): readonly string[] {
  if (diff === "" || (action === "create" && !options.isFull)) return [];
  const lines = diff
    .trimEnd()
    .split("\n")
    .filter((line) => !/^(?:---|\+\+\+) /.test(line));
  const shown = options.isFull ? lines : lines.slice(0, SHOWN_DIFF_LINES);
  const hidden = lines.length - shown.length;
  return [
    ...shown.map((line) =>
      line.startsWith("-") ? options.red(line) : line.startsWith("+") ? options.green(line) : line,
    ),
    ...(hidden === 0 ? [] : [`… ${counted(hidden, "more line")}: --full shows them`]),
  ];
}

function obstacleLines({ steps }: UpgradePlan, options: PlanTextOptions): readonly string[] {
  const obstacles = steps.flatMap((step) => step.obstacles.map((obstacle) => ({ step: step.step, ...obstacle })));
  if (obstacles.length === 0) return [];
  return [
    options.red("This plan cannot be applied yet:"),
    ...obstacles.flatMap(({ step, message, remedy }) => [`- ${step}: ${message}`, `  ${remedy}`]),
    "",
  ];
}
