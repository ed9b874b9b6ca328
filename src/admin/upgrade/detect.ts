import { detectFacts } from "../../upgrade/detect/detect.ts";
import { type Command, EXIT_FAILED, EXIT_OK, wantsJson } from "../main/command.ts";
import { stdoutPage } from "../terminal/page.ts";
import { detectionText } from "./detection-text.ts";
import { CONTEXT_OPTION, DETECTION_OPTIONS, detectionRequest } from "./options.ts";
import { withUpgradeSite } from "./site.ts";

export const upgradeDetect: Command = {
  kind: "command",
  name: "detect",
  summary: "Find out what is installed, and what of it an upgrade has to take care of",
  description: [
    "Shows how the network was installed, its datastore, the release of every part, upgrades that have not ended, and what an upgrade has",
    "to take care of. Nothing is guessed: if the cluster does not show something, or shows two things, the option that decides it is named,",
    "and the exit code is 1. Reads only.",
  ].join("\n"),
  options: [...DETECTION_OPTIONS, CONTEXT_OPTION],
  needsDatastore: true,
  versionCheck: "refuse",
  examples: [
    { command: "upgrade detect", does: "What is installed here, and can it be upgraded?" },
    { command: "upgrade detect -o json", does: "The same for a script" },
    { command: "upgrade detect --from-version v3.26.1", does: "Say which release it is, if images have digests" },
  ],
  run: (context, given) =>
    withUpgradeSite(context, given, async ({ objects, openDatastore }) => {
      const detection = await detectFacts(
        objects,
        detectionRequest(given, context.version, () => openDatastore("etcd")),
      );
      const obstacles = detection.kind === "found" ? [] : detection.obstacles;
      const facts = detection.kind === "found" ? detection.facts : detection.partial;
      const json = () => `${JSON.stringify({ ...facts, obstacles }, undefined, 2)}\n`;
      context.stdout(wantsJson(given) ? json() : detectionText(facts, obstacles, stdoutPage(context)));
      return obstacles.length === 0 ? EXIT_OK : EXIT_FAILED;
    }),
};
