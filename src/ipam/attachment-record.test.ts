import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type FileFolder, openFolder } from "../linux/file-folder.ts";
import {
  type AttachmentRecord,
  attachmentsFolder,
  readAttachment,
  removeAttachment,
  writeAttachment,
} from "./attachment-record.ts";

const RECORD: AttachmentRecord = {
  mark: "net/c1/eth0",
  pod: { namespace: "shop", name: "web" },
  addresses: ["10.0.0.5"],
  floating: [{ internalIP: "10.0.0.5", externalIP: "192.0.2.5" }],
  sourcePrefixes: ["198.51.100.0/24"],
};

let directory: string;
let folder: FileFolder;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "attachments-"));
  folder = openFolder(attachmentsFolder(directory));
});
afterEach(() => rmSync(directory, { recursive: true }));

describe("the record of an attachment on its host", () => {
  test("is read as it was written, and only its owner can write it", () => {
    writeAttachment(folder, "vend1", RECORD);

    expect(readAttachment(folder, "vend1")).toEqual(RECORD);
    expect(statSync(join(folder.path, "vend1")).mode & 0o022).toBe(0);
  });

  test("does not exist before it is written, or if the file is damaged", () => {
    expect(readAttachment(folder, "vend1")).toBeUndefined();
    writeAttachment(folder, "vend1", RECORD);
    for (const text of ["", "{", '{"mark":1}']) {
      writeFileSync(join(folder.path, "vend1"), text);
      expect(readAttachment(folder, "vend1")).toBeUndefined();
    }
  });

  test("is removed for its own container only; a damaged one for every container", () => {
    writeAttachment(folder, "vend1", RECORD);
    removeAttachment(folder, { hostInterface: "vend1", mark: "net/older/eth0" });
    expect(readAttachment(folder, "vend1")).toEqual(RECORD);
    removeAttachment(folder, { hostInterface: "vend1", mark: RECORD.mark });
    expect(folder.list()).toEqual([]);
    writeFileSync(join(folder.path, "vend1"), "{");
    removeAttachment(folder, { hostInterface: "vend1", mark: RECORD.mark });
    expect(folder.list()).toEqual([]);
  });
});
