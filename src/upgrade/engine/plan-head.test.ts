import { expect, test } from "bun:test";
import { editsReport } from "./plan-head.ts";

test("what a user keeps and loses is collected from the notes of all steps, each once", () => {
  const lost = 'Variable FELIX_X="1" of the node agent has no counterpart in this release';
  const copied = 'FelixConfiguration "default": fields that this release does not have are not copied: spec.x';
  const steps = [
    { notes: [copied, "Two searches are made"] },
    {
      notes: [
        "Kept: spec.template.spec.tolerations",
        lost,
        lost,
        "The image r.example/v:v9 has to be in your registry",
      ],
    },
  ];

  expect(editsReport(steps)).toEqual([
    "Your edits that are kept:",
    "- spec.template.spec.tolerations",
    "What does not stay as it is:",
    `- ${copied}`,
    `- ${lost}`,
    "Images:",
    "- The image r.example/v:v9 has to be in your registry",
  ]);
  expect(editsReport([{ notes: ["Two searches are made"] }])).toEqual([]);
});
