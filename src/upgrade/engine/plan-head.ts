/** The first lines of a plan: what one has to know before one reads the steps. Pure. */
import { counted } from "../../counted.ts";
import { type Facts, NETWORK_TITLES } from "./facts.ts";
import type { Step, StepPlan } from "./step.ts";
import type { UpgradePlan } from "./upgrade-plan.ts";
import { durationText } from "./wording.ts";

interface Colors {
  bold(text: string): string;
  red(text: string): string;
  yellow(text: string): string;
}

export function headLines(plan: UpgradePlan, steps: readonly Step[], colors: Colors): readonly string[] {
  const { facts, run } = plan;
  const total = durationText(secondsOf(plan.steps));
  return [
    colors.bold(`Upgrade from ${facts.version} to ${facts.target}: ${methodText(facts)}`),
    plan.steps.length === 0
      ? "Nothing to do."
      : `${counted(plan.steps.length, "step")}, ${total} in total. Run ${run}.`,
    ...lockLines(plan.steps, colors),
    ...noReturnLines(plan.steps, steps, colors),
    ...blockedLines(plan.steps, colors),
    ...editsReport(plan.steps),
  ];
}

function secondsOf(steps: readonly StepPlan[]): number {
  return steps.reduce((sum, { estimatedSeconds }) => sum + estimatedSeconds, 0);
}

function methodText({ method, datastore }: Pick<Facts, "method" | "datastore">): string {
  const store = datastore === "etcd" ? "etcd" : "the Kubernetes API";
  switch (method.kind) {
    case "chart":
      return `Helm release "${method.release.name}" in namespace "${method.release.namespace}", datastore ${store}`;
    case "operator":
      return `installed by the operator, datastore ${store}`;
    case "manifest":
      return `installed by a manifest (${NETWORK_TITLES[method.network]}), datastore ${store}`;
  }
}

/** The datastore is locked from the one step to the other. */
function lockLines(steps: readonly StepPlan[], { yellow }: Colors): readonly string[] {
  const first = steps.findIndex(({ step }) => step === "storage");
  const last = steps.findIndex(({ step }) => step === "unlock");
  if (first === -1 || last === -1) return [];
  const time = durationText(secondsOf(steps.slice(first, last + 1)));
  const range = `from step ${first + 1} (storage) to step ${last + 1} (unlock)`;
  return [`${yellow("Pods cannot be started or removed")} ${range}: ${time}. Running pods keep their network.`];
}

function noReturnLines(plans: readonly StepPlan[], steps: readonly Step[], { yellow }: Colors): readonly string[] {
  const index = plans.findIndex((plan) => steps.some((step) => step.name === plan.step && step.isPointOfNoReturn));
  const plan = plans[index];
  if (plan === undefined) return [];
  const until = 'Until then rollback undoes everything but what a step below names as "Cannot be undone".';
  return [`${yellow("Point of no return:")} step ${index + 1} (${plan.step}). ${until}`];
}

function blockedLines(steps: readonly StepPlan[], { red }: Colors): readonly string[] {
  const count = steps.flatMap(({ obstacles }) => obstacles).length;
  if (count === 0) return [];
  const questions = `${counted(count, "question")} ${count === 1 ? "has" : "have"}`;
  return [`${red("BLOCKED:")} ${questions} to be decided before it can be applied; see the end of the plan.`];
}

/** What a user keeps and loses by an upgrade, collected from the notes of its steps. Pure. */
const KEPT = /^Kept: /;
/** As steps say it in their notes. */
const LOST =
  /no counterpart|not copied|no such kind|is taken: |is lost|are lost|is dropped|are dropped|is left out|are left out/;
const IMAGE = /^The image /;

export function editsReport(steps: readonly Pick<StepPlan, "notes">[]): readonly string[] {
  const notes = [...new Set(steps.flatMap((step) => step.notes))];
  const kept = notes.filter((note) => KEPT.test(note)).map((note) => note.replace(KEPT, ""));
  return [
    ...block("Your edits that are kept:", kept),
    ...block(
      "What does not stay as it is:",
      notes.filter((note) => LOST.test(note) && !KEPT.test(note)),
    ),
    ...block(
      "Images:",
      notes.filter((note) => IMAGE.test(note)),
    ),
  ];
}

function block(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [title, ...lines.map((line) => `- ${line}`)];
}
