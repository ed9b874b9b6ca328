import { expect, test } from "bun:test";
import { POLICY_SYNC_DIRECTORY } from "../../config/policy-sync-directory.ts";
import { syncPart } from "./sync-part.ts";

const OWN = { all: new Map(), recovered: new Set<string>(), follow: () => () => {} };
const wait = async () => {};

test("a directory that is not an absolute path is refused: the message names the variable, the value and the remedy", () => {
  const said: string[] = [];
  const say = (message: string) => said.push(message);
  const { volumes, parts } = syncPart({ environment: { [POLICY_SYNC_DIRECTORY]: "nodeagent" }, say }, OWN, wait);

  expect([volumes, parts]).toEqual([OWN, []]);
  expect(said).toEqual([expect.stringMatching(`${POLICY_SYNC_DIRECTORY} is "nodeagent"; use an absolute path`)]);
  expect(syncPart({ environment: { [POLICY_SYNC_DIRECTORY]: "/none" }, say }, OWN, wait).parts).toHaveLength(1);
});
