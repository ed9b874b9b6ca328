import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Address, parseAddress } from "../../ip/address.ts";
import { type FileFolder, openFolder } from "../../linux/file-folder.ts";
import { ownerOf } from "./port-owner.ts";
import type { RecordSet } from "./port-records.ts";
import { readRecord } from "./read-record-file.ts";
import {
  hostPortsFolder,
  ownerIdOf,
  type RecordedPorts,
  recordFileName,
  removeRecordFile,
  writeRecordFile,
} from "./record-file.ts";

const address = (text: string): Address => {
  const parsed = parseAddress(text);
  if (parsed === undefined) throw new Error(`not an address: ${text}`);
  return parsed;
};
const owner = ownerOf("net", { containerId: "c1", ifname: "eth0" });
const netns = "netns 1/2 3 /run/netns/one";
const pods = { 4: address("10.0.0.2"), 6: address("fd00::2") } as const;
const hosts = { 4: address("0.0.0.0"), 6: address("::") } as const;
const ofFamily = (family: 4 | 6): RecordSet => {
  const claim = {
    family,
    protocol: 6,
    hostAddress: hosts[family],
    hostPort: 80,
    podAddress: pods[family],
    podPort: 8080,
  };
  return {
    ...{ family, owner, netns },
    records: [
      { kind: "port", claim: family === 4 ? { ...claim, isLoopbackLeft: true } : claim },
      { kind: "source", masqueraded: { family, source: pods[family], length: 24, podAddress: pods[family] } },
    ],
  };
};
const WHOLE: RecordedPorts = {
  recordSets: [ofFamily(4), ofFamily(6)],
  loopback: { name: "br0", index: 7, isShared: true, isUplink: false, isNoted: true },
  hostNetns: "netns 1/1 1 /proc/thread-self/ns/net",
};

describe("the file of an owner's host ports", () => {
  let directory: string;
  let folder: FileFolder;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "host-ports-"));
    folder = openFolder(hostPortsFolder(directory));
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  const file = { name: recordFileName(owner.id), id: owner.id };

  test("is read as it was written", () => {
    for (const recorded of [WHOLE, { recordSets: [ofFamily(6)], loopback: undefined, hostNetns: undefined }]) {
      writeRecordFile(folder, recorded);
      expect(readRecord(folder, file)?.recorded).toEqual(recorded);
    }
  });

  test("is named after the owner, and nothing else is taken for one", () => {
    expect(ownerIdOf(file.name)).toEqual(owner.id);
    for (const name of [`.unfinished-${file.name}`, "notes", "", `${file.name}00`]) {
      expect(ownerIdOf(name)).toBeUndefined();
    }
  });

  test("is gone after its removal, which may come twice or before any", () => {
    removeRecordFile(directory, owner.id);
    writeRecordFile(folder, WHOLE);
    for (let times = 0; times < 2; times++) removeRecordFile(directory, owner.id);
    expect(readRecord(folder, file)).toBeUndefined();
  });

  test("is refused if it was damaged", () => {
    for (const text of ["", "{}", JSON.stringify({ owner: "", netns, records: [{ kind: "port" }] })]) {
      folder.write(file.name, text);
      expect(() => readRecord(folder, file)).toThrow();
    }
  });
});
