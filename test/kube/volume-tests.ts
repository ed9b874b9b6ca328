/** The CSI inline volume of sidecars: the kubelet mounts it with the driver that the node agent serves. */
import { expect } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { identity } from "../../src/identity.ts";
import { csiDriverObject } from "../support/csi.ts";
import { AGNHOST_IMAGE } from "../support/kube-images.ts";
import type { KubeNode } from "../support/kube-node.ts";
import { productClusterProblem } from "../support/kube-product.ts";
import { testNeeding } from "../support/needs.ts";
import { NAMESPACE } from "../support/pods-in-namespace.ts";
import { pollUntil } from "../support/poll.ts";
import type { ProductPods } from "../support/product-pods.ts";

const RUN_DIRECTORY = identity.runDirectory.replace(/^\/var\/run\//, "/run/");
const USER = 65532;
/** Where the pods have it. */
export const VOLUME_MOUNT = "/policy";

export function volumeTests(opened: () => ProductPods): void {
  const testVolumes = testNeeding(productClusterProblem());
  const node = () => opened().cluster.node;
  const create = (name: string, attributes: Readonly<Record<string, string>>) =>
    opened().pods.create({ name, spec: volumePodSpec(attributes) });

  const directories = () => {
    const path = node().host.view(`${RUN_DIRECTORY}/sidecars`);
    return existsSync(path) ? readdirSync(path) : [];
  };
  testVolumes("mounts the node agent's directory of a pod into it, and leaves nothing of it", async () => {
    const { cluster, pods } = opened();
    await cluster.server.apply(JSON.stringify(csiDriverObject()));
    // Refused while the others start: the kubelet tries again for as long as the pod exists.
    await create("wrong", { colour: "red" });
    await create("mounted", { user: String(USER) });
    const { metadata } = await pods.ready("mounted");
    const directory = `${RUN_DIRECTORY}/sidecars/${metadata.uid}`;

    const hasSocket = () => pods.exec("mounted", "sh", "-c", `test -S ${VOLUME_MOUNT}/agent.sock`).then(() => true);
    await pollUntil(hasSocket, "the socket of the node agent");
    node().host.writeFile(`${directory}/greeting`, "hello");
    expect(await pods.exec("mounted", "cat", `${VOLUME_MOUNT}/greeting`)).toBe("hello");
    await expect(pods.exec("mounted", "sh", "-c", `> ${VOLUME_MOUNT}/own`)).rejects.toThrow("Read-only file system");

    // An agent that is replaced knows the volumes of the former one, and the kubelet finds its driver again.
    await cluster.agent?.kill();
    await cluster.startAgent();
    expect(directories()).toEqual([metadata.uid]);
    await create("later", {});
    await pods.ready("later");
    expect(directories().length).toBe(2);

    const events = () => cluster.server.kubectl(["get", "events", `--namespace=${NAMESPACE}`]);
    await pollUntil(async () => (await events()).includes('"volumeAttributes.colour"'), "the event that names it");
    await pods.removeAll();
    await expectNoVolumes(node());
  });
}

/** Fails unless, soon, there is neither a mount nor a directory nor a record of a volume. */
export async function expectNoVolumes({ host }: KubeNode): Promise<void> {
  const left = async () => [
    ...readdirSync(host.view(`${RUN_DIRECTORY}/sidecars`)),
    ...readdirSync(host.view(`${RUN_DIRECTORY}/volumes`)),
    ...(await host.must(["cat", "/proc/self/mountinfo"])).split("\n").filter((line) => line.includes("~csi")),
  ];
  await pollUntil(async () => (await left()).length === 0, "the volumes to be gone").catch(async () => {
    expect(await left()).toEqual([]);
  });
}

/** Of a pod with the volume, as the user that it is for. */
export function volumePodSpec(volumeAttributes: Readonly<Record<string, string>>): Readonly<Record<string, unknown>> {
  return {
    terminationGracePeriodSeconds: 1,
    securityContext: { runAsUser: USER, runAsGroup: USER },
    containers: [
      {
        name: "main",
        image: AGNHOST_IMAGE,
        imagePullPolicy: "Never",
        args: ["pause"],
        volumeMounts: [{ name: "policy", mountPath: VOLUME_MOUNT, readOnly: true }],
      },
    ],
    volumes: [{ name: "policy", csi: { driver: identity.csiDriver, readOnly: true, volumeAttributes } }],
  };
}
