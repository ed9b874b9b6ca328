import { afterEach, describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TemporaryDirectory, temporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { openFolder } from "../../linux/file-folder.ts";
import { markOwnNetns } from "../../linux/netns-mark.ts";
import { runningOwners } from "./running-owners.ts";

const opened: TemporaryDirectory[] = [];
afterEach(() => {
  for (const directory of opened.splice(0)) directory.remove();
});

const PORT = { kind: "port", protocol: 6, hostAddress: "0.0.0.0", hostPort: 80, podAddress: "10.0.0.1", podPort: 8080 };
const SOURCE = { kind: "source", source: "10.0.0.0", length: 8, podAddress: "10.0.0.1" };

function folderWith(files: Readonly<Record<string, unknown>>) {
  const directory = temporaryDirectory("running-owners");
  opened.push(directory);
  const path = join(directory.path, "host-ports");
  mkdirSync(path);
  for (const [name, content] of Object.entries(files)) writeFileSync(join(path, name), JSON.stringify(content));
  return { path, owners: runningOwners(openFolder(path)) };
}

describe("runningOwners()", () => {
  test("returns the ports of containers whose network namespace is there, and not those that have ended", () => {
    const { owners } = folderWith({
      ["a".repeat(32)]: { owner: "podman/web/eth0", netns: markOwnNetns(), records: [SOURCE, PORT] },
      ["b".repeat(32)]: { owner: "podman/ended/eth0", netns: "netns 1/1 1 /run/netns/ended", records: [PORT] },
      ["d".repeat(32)]: {
        owner: "podman/other/eth0",
        netns: markOwnNetns(),
        hostNetns: "netns 1/1 1 /x",
        records: [PORT],
      },
      ".unfinished-x": "half of one",
    });

    expect(owners).toEqual({
      owners: [
        {
          owner: { id: Uint8Array.fromHex("a".repeat(32)), name: "podman/web/eth0" },
          ports: [expect.objectContaining({ protocol: 6, hostPort: 80, podPort: 8080 })],
        },
      ],
      unreadable: [],
    });
  });

  test("does not take a record that it cannot read for one of an ended container", () => {
    const name = "c".repeat(32);
    const { path, owners } = folderWith({ [name]: { owner: "x", netns: "x", records: [{ kind: "future" }] } });

    expect(owners).toEqual({ owners: [], unreadable: [join(path, name)] });
  });

  test("finds none where no port was ever published", () => {
    expect(runningOwners(openFolder("/nonexistent/host-ports"))).toEqual({ owners: [], unreadable: [] });
  });
});
