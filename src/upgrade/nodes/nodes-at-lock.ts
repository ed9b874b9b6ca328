/** The nodes that the cluster had when the datastore was locked: every other one has joined since, and needs no lock. */
import { parseJson } from "../../parse-json.ts";
import type { StepSite } from "../engine/step.ts";
import { nameOf } from "./pods.ts";

const BACKUP = "nodes-at-the-lock";

/** The first time counts: what is saved stays. */
export async function saveFormerNodes({ objects, backups }: Pick<StepSite, "objects" | "backups">): Promise<void> {
  const nodes = await objects.list("/api/v1/nodes");
  await backups.save(BACKUP, JSON.stringify(nodes.map(nameOf).toSorted()));
}

/** `undefined`: it is not known which nodes have joined since. */
export async function readFormerNodes({
  backups,
}: Pick<StepSite, "backups">): Promise<ReadonlySet<string> | undefined> {
  const text = await backups.read(BACKUP);
  return text === undefined ? undefined : new Set(parseJson(text) as readonly string[]);
}
