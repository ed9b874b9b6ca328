/** The CSI driver of the agent in the kernel: real mounts on a private host, called as the kubelet does it. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { identity } from "../../src/identity.ts";
import { callGrpc, publishRequest, unpublishRequest } from "../support/csi.ts";
import { type Host, hostProblem, openHost } from "../support/host.ts";
import { testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { type Agent, startAgent } from "./agent.ts";

const test = testNeeding(hostProblem());
const { csiDriver, nodeAgent } = identity;
const RUN = identity.runDirectory.replace(/^\/var\/run\//, "/run/");
const KUBELET = "/var/lib/kubelet";
const SOCKET = `${KUBELET}/plugins/${csiDriver}/csi.sock`;
const TARGET = `${KUBELET}/pods/uid-1/volumes/kubernetes.io~csi/policy/mount`;

let host: Host;
let agent: Agent;
beforeAll(async () => {
  if (hostProblem() !== undefined) return;
  host = await openHost();
  agent = await startAgent(host);
}, 60_000);
afterAll(() => host?.[Symbol.asyncDispose]());

const call = (method: string, request: ReturnType<typeof publishRequest>) =>
  callGrpc(host.view(SOCKET), `/csi.v1.Node/${method}`, request);
const publish = (target = TARGET) => call("NodePublishVolume", publishRequest({ target }));
const unpublish = (target = TARGET) => call("NodeUnpublishVolume", unpublishRequest("csi-1", target));
const namesIn = (path: string) => (existsSync(host.view(path)) ? readdirSync(host.view(path)) : []);

/** The options of each mount on the target. */
const mounts = async () =>
  (await host.must(["cat", "/proc/self/mountinfo"]))
    .split("\n")
    .map((line) => line.split(" "))
    .filter((fields) => fields[4] === TARGET)
    .map((fields) => fields[5]?.split(",").filter((option) => !option.endsWith("atime")));

const RESTRICTED = [["ro", "nosuid", "nodev", "noexec"]];
const NOTHING = { mounts: [], sidecars: [], volumes: [], target: false };
const left = async () => ({
  mounts: await mounts(),
  sidecars: namesIn(`${RUN}/sidecars`),
  volumes: namesIn(`${RUN}/volumes`),
  target: existsSync(host.view(TARGET)),
});

describe("the CSI driver of the node agent", () => {
  test("is served when the kubelet's directory appears", async () => {
    for (const name of ["plugins", "plugins_registry"]) mkdirSync(host.view(`${KUBELET}/${name}`), { recursive: true });
    mkdirSync(host.view(`${TARGET}/..`), { recursive: true });
    await pollUntil(() => namesIn(`${KUBELET}/plugins_registry`).length > 0, "the driver");
  });

  test("mounts read-only, without devices, programs and set-user-ID, and repairs a mount that is not so", async () => {
    expect(await publish()).toMatchObject({ status: 0, error: "" });
    expect(await mounts()).toEqual(RESTRICTED);
    host.writeFile(`${RUN}/sidecars/uid-1/greeting`, "hello");
    expect(await host.must(["cat", `${TARGET}/greeting`])).toBe("hello");
    expect((await host.run(["mkdir", `${TARGET}/own`])).stderr).toContain("Read-only file system");

    // As a crash in the middle leaves it; and twice.
    await host.must(["mount", "-o", "remount,bind,rw", TARGET]);
    expect(await publish()).toMatchObject({ status: 0 });
    expect(await mounts()).toEqual(RESTRICTED);
    await host.must(["mount", "--bind", `${RUN}/sidecars/uid-1`, TARGET]);
    expect(await publish()).toMatchObject({ status: 0 });
    expect(await mounts()).toEqual(RESTRICTED);
  });

  test("keeps volumes when it is killed, and unmounts all of them when asked, however often", async () => {
    await agent.signal("KILL");
    await agent.ended;
    agent = await startAgent(host);
    const isServed = () =>
      publish().then(
        ({ status }) => status === 0,
        () => false,
      );
    await pollUntil(isServed, "the driver of the next agent");
    expect(await mounts()).toEqual(RESTRICTED);
    await host.must(["mount", "--bind", `${RUN}/sidecars/uid-1`, TARGET]);
    for (const _ of [1, 2]) expect(await unpublish()).toMatchObject({ status: 0, error: "" });
    expect(await left()).toEqual(NOTHING);
  });

  test("refuses a target behind a link, and mounts nothing there", async () => {
    await host.must(["ln", "-s", "/opt", `${KUBELET}/pods/linked`]);
    for (const target of ["/opt/mount", `${KUBELET}/pods/linked/mount`, `${KUBELET}/pods/../../../../opt/mount`]) {
      expect(await publish(target)).toMatchObject({ status: 3, error: expect.stringContaining(target) });
      expect(await unpublish(target)).toMatchObject({ status: 3 });
    }
    expect(namesIn("/opt")).not.toContain("mount");
    expect(await left()).toEqual(NOTHING);
  });

  test("is removed with the product, with its mounts, and names the pods that still have one", async () => {
    expect(await publish()).toMatchObject({ status: 0 });
    await agent.signal("TERM");
    await agent.ended;
    expect(await mounts()).toEqual(RESTRICTED);
    const { code, stderr } = await host.run([builtProgram(nodeAgent), "uninstall"]);
    expect([code, stderr]).toEqual([0, expect.stringContaining("red/web")]);
    expect(await left()).toEqual(NOTHING);
    expect([namesIn(`${KUBELET}/plugins`), namesIn(`${KUBELET}/plugins_registry`)]).toEqual([[], []]);
  });
});
