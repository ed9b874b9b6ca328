import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { temporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import type { FollowedStore } from "../../datastore/replica/feed.ts";
import { startReplica } from "../../datastore/replica.ts";
import { type FileFolder, openFolder } from "../../linux/file-folder.ts";
import { keepSeenRevisions } from "./seen-revisions.ts";

describe("keepSeenRevisions()", () => {
  let directory: ReturnType<typeof temporaryDirectory>;
  let folder: FileFolder;
  beforeEach(() => {
    directory = temporaryDirectory("seen");
    folder = openFolder(directory.path);
  });
  afterEach(() => directory.remove());
  const never = (problem: string) => {
    throw new Error(problem);
  };

  test("the next process lists nothing that is older than what this one has shown", async () => {
    const memory = openMemory();
    const asked: unknown[] = [];
    const store: FollowedStore = {
      read: (wanted) => {
        asked.push(...wanted.map((each) => each.kind === "prefix" && each.enough));
        return memory.read(wanted);
      },
      watch: (...given) => memory.watch(...given),
    };
    const kinds = { things: { prefix: "/k/", decode: ({ value }: { readonly value: string }) => value } };
    await memory.commit([{ kind: "put", key: "/k/a", value: "x" }]);
    const run = async (untilSize: number) => {
      const stop = new AbortController();
      const replica = startReplica(store, kinds, { signal: stop.signal, seen: keepSeenRevisions(folder, never) });
      for await (const { snapshot } of replica.updates()) {
        // What consumers see is noted already.
        expect(keepSeenRevisions(folder, never).find("/k/")).toBe(snapshot.things.revision);
        if (snapshot.things.size === untilSize) break;
        await memory.commit([{ kind: "put", key: "/k/b", value: "y" }]);
      }
      stop.abort();
      await replica.ended;
    };
    await run(2);
    await run(2);

    expect(asked).toEqual([{}, { notOlderThan: (await memory.read([])).revision }]);
  });

  test("forgets what it cannot keep, and what cannot be read", () => {
    keepSeenRevisions(folder, never).note("/k/", "7");
    const problems: string[] = [];
    const refusing = { ...folder, write: () => never("no space") };
    keepSeenRevisions(refusing, (problem) => problems.push(problem)).note("/k/", "8");

    expect(problems).toEqual([expect.stringContaining("no space")]);
    expect(keepSeenRevisions(folder, never).find("/k/")).toBeUndefined();
    writeFileSync(`${directory.path}/seen-revisions.json`, '{"/k/":"seven"}');
    expect(keepSeenRevisions(folder, never).find("/k/")).toBeUndefined();
  });
});
