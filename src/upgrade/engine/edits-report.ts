/** What a user keeps and loses by an upgrade, collected from the notes of its steps. Pure. */
import type { StepPlan } from "./step.ts";

const KEPT = /^Kept: /;
/** As steps say it in their notes. */
const LOST =
  /no counterpart|not copied|no such kind|is taken: |is lost|are lost|is dropped|are dropped|is left out|are left out/;
const IMAGE = /^The image /;

export function keptAndLost(steps: readonly Pick<StepPlan, "notes">[]): readonly string[] {
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
