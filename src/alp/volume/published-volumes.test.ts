import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { refusalOf } from "../../../test/support/csi.ts";
import { ImitatedMounts } from "../../../test/support/imitated-mounts.ts";
import { type TemporaryDirectory, temporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { onCrashPoint } from "../../effect.ts";
import { PublishedVolumes } from "./published-volumes.ts";
import { VolumeFiles } from "./volume-files.ts";
import type { VolumeRequest } from "./volume-request.ts";

let directory: TemporaryDirectory;
let mounts: ImitatedMounts;
const at = (path: string) => join(directory.path, path);

beforeEach(() => {
  directory = temporaryDirectory("volumes");
  prepare();
});
afterEach(() => {
  onCrashPoint(() => {});
  directory.remove();
});

function prepare(): void {
  for (const name of ["run", "kubelet"]) rmSync(at(name), { recursive: true, force: true });
  mounts = new ImitatedMounts();
  mkdirSync(at("run"));
  for (const name of ["a", "b"]) mkdirSync(at(`kubelet/pods/${name}`), { recursive: true });
}

/** As an agent that starts. */
function open(): PublishedVolumes {
  const volumes = new PublishedVolumes(new VolumeFiles({ runDirectory: at("run"), kubelet: at("kubelet") }, mounts));
  volumes.recover();
  return volumes;
}

function request(more: Partial<VolumeRequest> = {}): VolumeRequest {
  const target = at("kubelet/pods/a/mount");
  return { id: "csi-1", uid: "uid-1", namespace: "red", pod: "web", user: 65532, target, ...more };
}

/** Every path below the directories of product and kubelet, and the mounts. */
function state(): readonly string[] {
  const paths = ["run", "kubelet"].flatMap((name) =>
    readdirSync(at(name), { recursive: true }).map((path) => {
      const full = at(`${name}/${path}`);
      const status = lstatSync(full);
      const content = status.isFile() ? ` ${readFileSync(full, "utf8")}` : "";
      return `${name}/${path} ${(status.mode & 0o777).toString(8)}${content}`;
    }),
  );
  return [...paths.toSorted(), ...Array.from(mounts.mounted, ([target, list]) => `${target} ${JSON.stringify(list)}`)];
}

const REMOVED = ["kubelet/pods 755", "kubelet/pods/a 755", "kubelet/pods/b 755", "run/sidecars 700", "run/volumes 755"];

describe("PublishedVolumes", () => {
  test("mounts the directory of the pod read-only, and announces it", () => {
    const volumes = open();
    let calls = 0;
    volumes.follow(() => {
      calls += 1;
    });
    volumes.publish(request());

    expect(calls).toBe(1);
    expect([...volumes.all]).toEqual([
      ["uid-1", { uid: "uid-1", namespace: "red", pod: "web", user: 65532, directory: at("run/sidecars/uid-1") }],
    ]);
    expect([...mounts.mounted]).toEqual([
      [at("kubelet/pods/a/mount"), [{ directory: at("run/sidecars/uid-1"), isReadOnly: true }]],
    ]);
    expect(state()).toContain("run/sidecars 700");
    expect(state()).toContain("run/sidecars/uid-1 755");
  });

  test("knows which pods have their volume of a former agent", () => {
    const first = open();
    first.publish(request());
    expect([...first.recovered]).toEqual([]);

    const second = open();
    second.publish(request({ id: "csi-2", uid: "uid-2", target: at("kubelet/pods/b/mount") }));
    second.recover();
    expect([...second.recovered]).toEqual(["uid-1"]);
  });

  test("changes nothing if it is published again, and mounts again what is not as it should be", () => {
    const volumes = open();
    volumes.publish(request());
    const before = state();
    volumes.publish(request());
    expect(state()).toEqual(before);

    const [target = "", [mount] = []] = [...mounts.mounted][0] ?? [];
    if (mount === undefined) throw new Error("not mounted");
    mounts.mounted.set(target, [mount, mount]);
    volumes.publish(request());
    expect(state()).toEqual(before);
    mounts.mounted.set(target, [{ ...mount, isReadOnly: false }]);
    volumes.publish(request());
    expect(state()).toEqual(before);
  });

  test("leaves nothing after it is unpublished, however often, and whatever was mounted or removed meanwhile", () => {
    const volumes = open();
    volumes.publish(request());
    writeFileSync(at("run/sidecars/uid-1/agent.sock"), "");
    mounts.mountReadOnly(at("run/sidecars/uid-1"), request().target);
    const seen: number[] = [];
    volumes.follow(() => seen.push(readdirSync(at("run/sidecars/uid-1")).length));
    volumes.unpublish(request());
    // The one that follows learns of it while the directory is still there.
    expect(seen).toEqual([1]);
    volumes.unpublish(request());
    expect(state()).toEqual(REMOVED);
    expect(volumes.all.size).toBe(0);

    volumes.publish(request());
    mounts.mounted.clear();
    rmSync(at("kubelet/pods/a"), { recursive: true });
    volumes.unpublish(request());
    expect(state()).toEqual(REMOVED.filter((line) => !line.includes("pods/a")));
  });

  test("shares the directory among the volumes of a pod, until the last is unpublished", () => {
    const volumes = open();
    const other = { id: "csi-2", target: at("kubelet/pods/b/mount") };
    volumes.publish(request());
    volumes.publish(request(other));
    volumes.unpublish(request());
    expect([...volumes.all.keys()]).toEqual(["uid-1"]);
    expect(readdirSync(at("run/sidecars"))).toEqual(["uid-1"]);
    volumes.unpublish(request(other));
    expect(state()).toEqual(REMOVED);
  });

  test("refuses another user for a second volume of the pod", () => {
    const volumes = open();
    volumes.publish(request());
    const other = request({ id: "csi-2", target: at("kubelet/pods/b/mount"), user: 7 });
    expect(refusalOf(() => volumes.publish(other))).toMatchObject({
      status: "failed-precondition",
      message: expect.stringContaining('"7" differs from "65532"'),
    });
  });

  const TARGETS: readonly (readonly [string, string])[] = [
    ["elsewhere", "elsewhere/mount"],
    ["outside by dots", "kubelet/pods/../../elsewhere/mount"],
    ["beside the kubelet's directory", "kubelet-2/mount"],
    ["the kubelet's directory itself", "kubelet"],
    ["behind a link", "kubelet/link/mount"],
    ["a link", "kubelet/pods/a/linked"],
    ["a file", "kubelet/pods/a/file"],
    ["in a directory that does not exist", "kubelet/pods/none/mount"],
  ];
  test.each(TARGETS)("refuses a target that is %s, and changes nothing", (_, path) => {
    for (const name of ["elsewhere", "kubelet-2"]) mkdirSync(at(name), { recursive: true });
    symlinkSync(at("elsewhere"), at("kubelet/link"));
    symlinkSync(at("elsewhere"), at("kubelet/pods/a/linked"));
    writeFileSync(at("kubelet/pods/a/file"), "");
    const before = state();
    const volumes = open();
    const target = `${directory.path}/${path}`;
    expect(refusalOf(() => volumes.publish(request({ target })))).toMatchObject({
      status: "invalid-argument",
      message: expect.stringContaining(target),
    });
    expect(state()).toEqual(before);
    expect(mounts.mounted.size).toBe(0);
  });

  test("accepts a kubelet's directory that is a link", () => {
    rmSync(at("kubelet"), { recursive: true });
    mkdirSync(at("data/pods/a"), { recursive: true });
    symlinkSync(at("data"), at("kubelet"));
    open().publish(request());
    expect([...mounts.mounted.keys()]).toEqual([at("data/pods/a/mount")]);
    open().publish(request({ target: at("data/pods/a/mount") }));
    expect([...mounts.mounted.keys()]).toEqual([at("data/pods/a/mount")]);
  });
});

describe("an agent that starts", () => {
  test("knows the volumes of the former one", () => {
    open().publish(request());
    const before = state();
    const volumes = open();
    expect([...volumes.all.keys()]).toEqual(["uid-1"]);
    expect(state()).toEqual(before);
    volumes.unpublish(request());
    expect(state()).toEqual(REMOVED);
  });

  test("removes volumes of pods that are gone, directories without a volume, and damaged records", () => {
    open().publish(request());
    mounts.mounted.clear();
    rmSync(at("kubelet/pods/a"), { recursive: true });
    mkdirSync(at("run/sidecars/uid-9"));
    writeFileSync(at("run/volumes/csi-9.json"), "{");
    const volumes = open();
    expect(volumes.all.size).toBe(0);
    expect(state()).toEqual(REMOVED.filter((line) => !line.includes("pods/a")));
  });

  test("knows the other volumes if one of them fails, and knows that one when it is called again", () => {
    open().publish(request());
    open().publish(request({ id: "csi-2", uid: "uid-2", pod: "api", target: at("kubelet/pods/b/mount") }));
    rmSync(at("run/sidecars/uid-1"), { recursive: true });
    writeFileSync(at("run/sidecars/uid-1"), "in the way");
    const volumes = new PublishedVolumes(new VolumeFiles({ runDirectory: at("run"), kubelet: at("kubelet") }, mounts));

    expect(volumes.recover()).toHaveLength(1);
    expect([[...volumes.all.keys()], volumes.isRecovered]).toEqual([["uid-2"], false]);
    rmSync(at("run/sidecars/uid-1"));
    expect(volumes.recover()).toEqual([]);
    expect([[...volumes.all.keys()].toSorted(), volumes.isRecovered]).toEqual([["uid-1", "uid-2"], true]);
  });

  test("removes neither a record that cannot be read, nor the directories that may belong to it", () => {
    open().publish(request());
    rmSync(at("run/volumes/csi-1.json"));
    mkdirSync(at("run/volumes/csi-1.json"));
    const volumes = new PublishedVolumes(new VolumeFiles({ runDirectory: at("run"), kubelet: at("kubelet") }, mounts));

    expect(volumes.recover()).toHaveLength(1);
    expect(state()).toContain("run/sidecars/uid-1 755");
    expect(state()).toContain("run/volumes/csi-1.json 755");
  });

  test("removes everything in an uninstallation, and names the pods", () => {
    open().publish(request());
    expect(open().removeAll()).toEqual(["red/web"]);
    expect(state()).toEqual(REMOVED.filter((line) => !line.startsWith("run/")));
    expect(open().removeAll()).toEqual([]);
  });
});

/** Without the directories that are for all volumes: whoever is killed early has not made them. */
function withoutBase(lines: readonly string[]): readonly string[] {
  return lines.filter((line) => line !== "run/sidecars 700" && line !== "run/volumes 755");
}

/** Runs the work, and stops it at the given point; returns whether it got there. */
function stoppedAt(point: number, work: () => void): boolean {
  let passed = 0;
  let isStopped = false;
  onCrashPoint(() => {
    passed += 1;
    if (passed === point || isStopped) {
      isStopped = true;
      throw new Error("killed");
    }
  });
  try {
    work();
  } catch (failure) {
    if (!isStopped) throw failure;
  }
  onCrashPoint(() => {});
  return isStopped;
}

describe("an agent that is killed at any step", () => {
  Reflect.set(globalThis, "FAULTS", true);

  /** What the kubelet does next, and the state that it leads to. */
  const ENDS: readonly (readonly [string, (volumes: PublishedVolumes) => void, () => readonly string[]])[] = [
    ["publishes again", (volumes) => volumes.publish(request()), published],
    ["unpublishes", (volumes) => volumes.unpublish(request()), removed],
  ];

  function published(): readonly string[] {
    prepare();
    open().publish(request());
    return state();
  }

  function removed(): readonly string[] {
    return REMOVED;
  }

  for (const [name, next, expected] of ENDS) {
    for (const step of ["publish", "unpublish"] as const) {
      test(`of ${step}: the kubelet ${name}, and nothing is missing or left`, () => {
        const wanted = expected();
        let point = 0;
        for (let isStopped = true; isStopped; ) {
          point += 1;
          prepare();
          const volumes = open();
          if (step === "unpublish") volumes.publish(request());
          isStopped = stoppedAt(point, () => volumes[step](request()));
          // A second one is killed while it starts.
          stoppedAt(1, open);
          next(open());
          expect([point, withoutBase(state())]).toEqual([point, withoutBase(wanted)]);
        }
        expect(point).toBeGreaterThan(6);
      });
    }
  }

  test("leaves nothing if the kubelet has removed the pod", () => {
    for (let point = 1, isStopped = true; isStopped; point += 1) {
      prepare();
      const volumes = open();
      isStopped = stoppedAt(point, () => volumes.publish(request()));
      mounts.mounted.clear();
      rmSync(dirname(request().target), { recursive: true });
      expect(open().all.size).toBe(0);
      expect(state().filter((line) => /uid-1|csi-1\.json /.test(line))).toEqual([]);
    }
  });
});
