import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { PodSocket } from "../sidecars/pod-socket.ts";
import { SyncVolumes } from "./sync-volumes.ts";

let directory: ReturnType<typeof temporaryDirectory>;
const at = (...names: readonly string[]) => join(directory.path, ...names);
beforeEach(() => {
  directory = temporaryDirectory("policysync");
});
afterEach(() => directory.remove());

/** As a FlexVolume (the ID is the UID) or a CSI driver leaves it. */
function put(id: string, record: object | string): void {
  for (const name of ["creds", `mount/${id}`]) mkdirSync(at(name), { recursive: true });
  writeFileSync(at("creds", `${id}.json`), typeof record === "string" ? record : JSON.stringify(record));
}

const podOf = (UID: string) => ({ UID, Workload: "web", Namespace: "shop", ServiceAccount: "default" });

describe("SyncVolumes", () => {
  test("finds the pods that are there, and those that come; tells when one has gone, and removes its directory", () => {
    put("uid-1", podOf("uid-1"));
    const volumes = new SyncVolumes(directory.path);
    let changes = 0;
    volumes.follow(() => {
      changes += 1;
    });
    put("csi-0a", podOf("uid-2"));
    volumes.refresh();
    volumes.refresh();

    const expected = { namespace: "shop", pod: "web" };
    expect([...volumes.all.values()]).toEqual([
      { ...expected, uid: "uid-2", directory: at("mount", "csi-0a") },
      { ...expected, uid: "uid-1", directory: at("mount", "uid-1") },
    ]);
    expect([...volumes.recovered]).toEqual(["uid-1"]);
    rmSync(at("creds", "uid-1.json"));
    volumes.refresh();
    expect([changes, [...volumes.all.keys()], existsSync(at("mount", "uid-1"))]).toEqual([2, ["uid-2"], false]);
    rmSync(at("creds"), { recursive: true });
    expect([volumes.refresh(), volumes.all.size, changes]).toEqual([false, 0, 3]);
  });

  test("leaves out records that are not complete, and directories that are missing or links", () => {
    put("half", '{"UID":"ha');
    put("other", { UID: "other", Namespace: "shop" });
    put("gone", podOf("gone"));
    put("link", podOf("link"));
    for (const name of ["gone", "link"]) rmSync(at("mount", name), { recursive: true });
    symlinkSync("/etc", at("mount", "link"));

    expect([...new SyncVolumes(directory.path).all]).toEqual([]);
    expect(new SyncVolumes(at("none")).refresh()).toBe(false);
  });
});

describe("PodSocket of an earlier release", () => {
  test("what a pod puts in place of its socket is replaced, and what that leads to stays as it is", () => {
    put("uid-1", podOf("uid-1"));
    writeFileSync(at("secret"), "");
    chmodSync(at("secret"), 0o600);
    symlinkSync(at("secret"), at("mount", "uid-1", "socket"));
    const [volume] = new SyncVolumes(directory.path).all.values();
    if (volume === undefined) throw new Error("no volume");
    const nothing = () => {};
    const means = { version: "2.0.0", elapsed: () => 0, refused: nothing, greeted: nothing, applied: nothing };
    const socket = new PodSocket(volume, { ...means, closed: nothing });
    socket.listen();

    expect(statSync(at("mount", "uid-1", "socket")).mode & 0o777).toBe(0o777);
    expect(statSync(at("secret")).mode & 0o777).toBe(0o600);
    socket.close();
    expect(existsSync(at("mount", "uid-1", "socket"))).toBe(false);
    expect(existsSync(at("secret"))).toBe(true);
  });
});
