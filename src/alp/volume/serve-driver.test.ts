/** The services as the kubelet calls them, with raw frames; mounts are imitated. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { callGrpc, publishRequest, unpublishRequest } from "../../../test/support/csi.ts";
import { ImitatedMounts } from "../../../test/support/imitated-mounts.ts";
import { pollUntil } from "../../../test/support/poll.ts";
import { type TemporaryDirectory, temporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { SYSTEM_CLOCK } from "../../datastore/replica/clock.ts";
import { identity } from "../../identity.ts";
import { VERSION } from "../../version.ts";
import { PublishedVolumes } from "./published-volumes.ts";
import { removeDriver, serveDriver } from "./serve-driver.ts";
import { VolumeFiles } from "./volume-files.ts";

const { csiDriver } = identity;
let directory: TemporaryDirectory;
let volumes: PublishedVolumes;
let stop: AbortController;
let served: Promise<void>;
let logged: string[];
const at = (path: string) => join(directory.path, path);
const csi = () => at(`kubelet/plugins/${csiDriver}/csi.sock`);
const registration = () => at(`kubelet/plugins_registry/${csiDriver}-reg.sock`);

beforeEach(() => {
  directory = temporaryDirectory("csi", "/tmp");
  const files = new VolumeFiles({ runDirectory: at("run"), kubelet: at("kubelet") }, new ImitatedMounts());
  volumes = new PublishedVolumes(files);
  volumes.recover();
  stop = new AbortController();
  logged = [];
  const wait = (milliseconds: number, signal: AbortSignal) => SYSTEM_CLOCK.wait(Math.min(milliseconds, 5), signal);
  const log = (message: string, level: string) => logged.push(`${level} ${message}`);
  served = serveDriver({ kubelet: at("kubelet"), node: "node-1", volumes, wait, log }, stop.signal);
});
afterEach(async () => {
  stop.abort();
  await served;
  directory.remove();
});

/** What the kubelet does when it starts. */
async function startKubelet(): Promise<void> {
  for (const name of ["plugins", "plugins_registry", "pods/a"]) mkdirSync(at(`kubelet/${name}`), { recursive: true });
  await pollUntil(() => existsSync(registration()), "the driver to be served");
}

describe("serveDriver()", () => {
  test("tries again what could not be recovered, also without a kubelet", async () => {
    mkdirSync(at("run"));
    writeFileSync(at("run/sidecars"), "in the way");
    expect(volumes.recover()).toHaveLength(1);
    rmSync(at("run/sidecars"));
    await pollUntil(() => volumes.isRecovered, "the volumes");
    expect(logged).toEqual(["INFO All volumes of sidecars are recovered"]);
  });

  test("waits for the kubelet, registers with it, and takes its sockets along", async () => {
    await startKubelet();
    expect([csi(), registration()].map((path) => statSync(path).mode & 0o777)).toEqual([0o600, 0o600]);
    const { message } = await callGrpc(registration(), "/pluginregistration.Registration/GetInfo");
    expect([1, 2, 3, 4].map((field) => message.text(field))).toEqual(["CSIPlugin", csiDriver, csi(), "1.0.0"]);

    stop.abort();
    await served;
    expect(readdirSync(at("kubelet/plugins"))).toEqual([]);
    expect(readdirSync(at("kubelet/plugins_registry"))).toEqual([]);
  });

  test("is served again if the kubelet's directory is made again, or a socket is removed", async () => {
    await startKubelet();
    rmSync(at("kubelet"), { recursive: true });
    await startKubelet();
    rmSync(csi());
    await pollUntil(async () => existsSync(csi()) && existsSync(registration()), "the socket");
    const probe = () =>
      callGrpc(csi(), "/csi.v1.Identity/Probe").then(
        ({ status }) => status === 0,
        () => false,
      );
    await pollUntil(probe, "the driver");
  });

  test("logs what the kubelet says about the registration", async () => {
    await startKubelet();
    const notify = "/pluginregistration.Registration/NotifyRegistrationStatus";
    await callGrpc(registration(), notify, [[1, 1]]);
    await callGrpc(registration(), notify, [[2, "too old"]]);
    expect(logged).toEqual([
      `INFO The kubelet uses the CSI driver "${csiDriver}"`,
      `WARNING The kubelet refuses the CSI driver "${csiDriver}": too old`,
    ]);
  });

  test("says who it is, and that it has no optional abilities", async () => {
    await startKubelet();
    const { message } = await callGrpc(csi(), "/csi.v1.Identity/GetPluginInfo");
    expect([message.text(1), message.text(2)]).toEqual([csiDriver, VERSION]);
    expect((await callGrpc(csi(), "/csi.v1.Node/NodeGetInfo")).message.text(1)).toBe("node-1");
    for (const method of ["Identity/GetPluginCapabilities", "Identity/Probe", "Node/NodeGetCapabilities"]) {
      expect(await callGrpc(csi(), `/csi.v1.${method}`)).toMatchObject({ status: 0, error: "" });
    }
    for (const method of ["Node/NodeStageVolume", "Node/NodeGetVolumeStats", "Controller/CreateVolume"]) {
      expect((await callGrpc(csi(), `/csi.v1.${method}`)).status).toBe(12);
    }
  });

  test("publishes and unpublishes a volume", async () => {
    await startKubelet();
    const target = at("kubelet/pods/a/mount");
    const publish = publishRequest({ target, attributes: { user: "1337" } });
    for (const _ of [1, 2]) {
      expect(await callGrpc(csi(), "/csi.v1.Node/NodePublishVolume", publish)).toMatchObject({ status: 0 });
    }
    expect([...volumes.all.values()]).toMatchObject([
      { uid: "uid-1", user: 1337, directory: at("run/sidecars/uid-1") },
    ]);
    for (const _ of [1, 2]) {
      const reply = await callGrpc(csi(), "/csi.v1.Node/NodeUnpublishVolume", unpublishRequest("csi-1", target));
      expect(reply).toMatchObject({ status: 0 });
    }
    expect([volumes.all.size, existsSync(target)]).toEqual([0, false]);
  });

  test.each([
    [{ attributes: { colour: "red" } }, 3, '"volumeAttributes.colour"'],
    [{ attributes: { user: "root" } }, 3, 'volumeAttributes.user "root"'],
    [{ target: "/etc/mount" }, 3, 'target_path "/etc/mount"'],
    [{ attributes: { "csi.storage.k8s.io/pod.uid": "" } }, 9, "podInfoOnMount"],
  ])("refuses a volume by name: %p", async (input, status, message) => {
    await startKubelet();
    const request = publishRequest({ target: at("kubelet/pods/a/mount"), ...input });
    expect(await callGrpc(csi(), "/csi.v1.Node/NodePublishVolume", request)).toMatchObject({
      status,
      error: expect.stringContaining(message),
    });
    expect(volumes.all.size).toBe(0);
  });
});

describe("removeDriver()", () => {
  test("removes the sockets of an agent that was killed, and is content if there is nothing", async () => {
    mkdirSync(at(`kubelet/plugins/${csiDriver}`), { recursive: true });
    mkdirSync(at("kubelet/plugins_registry"));
    stop.abort();
    await served;
    for (const path of [csi(), registration()]) {
      mkdirSync(join(path, ".."), { recursive: true });
      writeFileSync(path, "");
    }
    for (const _ of [1, 2]) removeDriver(at("kubelet"));
    expect(readdirSync(at("kubelet"), { recursive: true }).toSorted()).toEqual(["plugins", "plugins_registry"]);
    rmSync(at("kubelet"), { recursive: true });
    removeDriver(at("kubelet"));
  });
});
