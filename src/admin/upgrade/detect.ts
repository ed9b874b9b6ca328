import { detectFacts } from "../../upgrade/detect/detect.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given, wantsJson } from "../main/command.ts";
import type { DatastoreAccess } from "../main/context.ts";
import { stdoutPage } from "../terminal/page.ts";
import { detectionText } from "./detection-text.ts";
import { detectionRequest } from "./given-options.ts";
import { withUpgradeSite } from "./site.ts";

export function run(context: DatastoreAccess, given: Given): Promise<ExitCode> {
  return withUpgradeSite(context, given, async ({ objects, openDatastore }) => {
    const detection = await detectFacts(
      objects,
      detectionRequest(given, context.version, () => openDatastore("etcd")),
    );
    const obstacles = detection.kind === "found" ? [] : detection.obstacles;
    const facts = detection.kind === "found" ? detection.facts : detection.partial;
    const json = () => `${JSON.stringify({ ...facts, obstacles }, undefined, 2)}\n`;
    context.stdout(wantsJson(given) ? json() : detectionText(facts, obstacles, stdoutPage(context)));
    return obstacles.length === 0 ? EXIT_OK : EXIT_FAILED;
  });
}
