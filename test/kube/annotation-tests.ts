/** Pods that ask for addresses, pools and a MAC by annotation, however they are created. */
import { expect } from "bun:test";
import { rmSync } from "node:fs";
import { poolsOf } from "../support/kube-families.ts";
import { MANIFESTS } from "../support/kube-node.ts";
import { addressesOf, type Pod, podManifest, workloadManifest } from "../support/kube-pods.ts";
import { NODE_NAME, type ProductClusterPlan, productClusterProblem } from "../support/kube-product.ts";
import { testNeeding } from "../support/needs.ts";
import { NAMESPACE } from "../support/pods-in-namespace.ts";
import { pollUntil } from "../support/poll.ts";
import { endpointName, type ProductPods } from "../support/product-pods.ts";
import { proofSize } from "../support/proof-size.ts";
import { type AddressRequest, expectAddresses, namespaceAnnotations, REFUSED, WISHES } from "./annotated-pods.ts";

type Creator = "Pod" | "static Pod" | "StatefulSet" | "Deployment";

interface Wanted {
  readonly wish: AddressRequest;
  readonly creator: Creator;
  /** Of the pod or of its controller. */
  readonly name: string;
  readonly number: number;
}

/** Whether a pod's name is what becomes of the name of what created it. */
const IS_CREATED_AS: Readonly<Record<Creator, (pod: string, name: string) => boolean>> = {
  Pod: (pod, name) => pod === name,
  "static Pod": (pod, name) => pod === `${name}-${NODE_NAME}`,
  StatefulSet: (pod, name) => pod === `${name}-0`,
  Deployment: (pod, name) => pod.startsWith(`${name}-`),
};
const CREATORS: readonly Creator[] = ["Pod", "static Pod", "StatefulSet", "Deployment"];
const EVERY_WAY: readonly Wanted[] = WISHES.flatMap((wish) =>
  CREATORS.map((creator, index) => ({ wish, creator, name: `${wish.name}-${index}`, number: index + 1 })),
);
/** In `make test` the creators take turns; an address that only one pod can have is asked for by all of them. */
const WANTED = proofSize<readonly Wanted[]>({
  everyDay: EVERY_WAY.filter(
    ({ wish, creator }) => wish.isExclusive || CREATORS[WISHES.indexOf(wish) % CREATORS.length] === creator,
  ),
  soak: EVERY_WAY,
});
/** Long enough that the next pod asks for the address before it is free, on a busy machine too. */
const SHUTDOWN_SECONDS = 12;

export function annotationTests(plan: ProductClusterPlan, opened: () => ProductPods): void {
  const testAnnotations = testNeeding(productClusterProblem());
  const { families } = plan;

  testAnnotations("gives pods of every kind what their annotations ask for", async () => {
    const { pods } = opened();
    await createAll();
    const checkAll = async () => {
      const all = await pods.allReady(WANTED.length);
      return await Promise.all(WANTED.map((wanted) => check(wanted, all)));
    };
    const before = await checkAll().finally(removeManifests);

    // A Deployment creates the next pod as soon as a pod is told to end, a StatefulSet as soon as it is gone from the API.
    const ofControllers = WANTED.filter(({ creator }) => creator === "StatefulSet" || creator === "Deployment");
    const namesOf = (creator: Creator) =>
      before.filter((_, index) => WANTED[index]?.creator === creator).map(({ metadata }) => metadata.name);
    await kubectl("delete", "pod", ...namesOf("StatefulSet"), "--force");
    await kubectl("delete", "pod", ...namesOf("Deployment"), "--wait=false");
    const next = await pods.allReady(WANTED.filter(({ creator }) => creator !== "static Pod").length);
    const after = await Promise.all(ofControllers.map((wanted) => check(wanted, next)));
    const earlier = new Set(before.map(({ metadata }) => metadata.uid));
    expect(after.filter(({ metadata }) => earlier.has(metadata.uid))).toEqual([]);
    // The address was not free yet: the kubelet has tried again.
    for (const [index, { creator, wish }] of ofControllers.entries()) {
      const pod = after[index];
      if (pod === undefined || creator !== "Deployment" || !wish.isExclusive) continue;
      expect(await eventsOf(pod.metadata.name)).toContain(addressesOf(pod)[0] ?? "");
    }
    await pods.removeAll();
    await opened().expectNothingLeft();
  });

  testAnnotations(
    "gives pods the pools of their namespace, and starts none that asks for what is refused",
    async () => {
      const { pods } = opened();
      await kubectl("annotate", "namespace", NAMESPACE, ...namespaceAnnotations(families));
      await pods.create({ name: "inherits" }, { name: "refused", annotations: REFUSED });
      const inherits = await pods.ready("inherits");
      const removed = namespaceAnnotations(families).map((annotation) => annotation.replace(/=.*/, "-"));
      await kubectl("annotate", "namespace", NAMESPACE, ...removed);

      const blue = poolsOf(families, "blue").map(({ name }) => name);
      expectAddresses(inherits, families, blue);
      const [annotation = ""] = Object.keys(REFUSED);
      await pollUntil(async () => (await eventsOf("refused")).includes(annotation), "an event with the reason");
      expect((await pods.get("refused")).status.phase).toBe("Pending");
      await pods.removeAll();
      await opened().expectNothingLeft();
    },
  );

  const kubectl = (...args: readonly string[]) =>
    opened().cluster.server.kubectl([...args, `--namespace=${NAMESPACE}`]);
  /** Why its sandbox could not be created. */
  const eventsOf = (pod: string) =>
    kubectl("get", "events", `--field-selector=reason=FailedCreatePodSandBox,involvedObject.name=${pod}`);

  const createAll = async () => {
    const { cluster } = opened();
    const manifests: string[] = [];
    for (const { creator, name, wish, number } of WANTED) {
      const shutdownSeconds = wish.isExclusive ? SHUTDOWN_SECONDS : 0;
      const podPlan = { name, annotations: wish.annotations(families, number), shutdownSeconds };
      const inNamespace = { ...podPlan, namespace: NAMESPACE };
      if (creator === "Pod") manifests.push(podManifest(inNamespace));
      else if (creator === "static Pod") cluster.node.host.writeFile(manifestOf(name), podManifest(inNamespace));
      else manifests.push(workloadManifest(creator, { ...inNamespace, replicas: 1 }));
    }
    await cluster.server.apply(manifests.join("\n---\n"));
  };

  const removeManifests = () => {
    for (const { name } of WANTED.filter(({ creator }) => creator === "static Pod")) {
      rmSync(opened().cluster.node.host.view(manifestOf(name)));
    }
  };

  const check = async ({ creator, name, wish, number }: Wanted, all: readonly Pod[]): Promise<Pod> => {
    const pod = all.find(({ metadata }) => IS_CREATED_AS[creator](metadata.name, name));
    if (pod === undefined) throw new Error(`no pod of ${creator} ${name}`);
    expectAddresses(pod, families, wish.expected(families, number));
    await wish.check?.(pod, number, { exec: opened().pods.exec, endpoint });
    return pod;
  };

  const endpoint = async (pod: string) => {
    const name = endpointName(pod);
    const text = await opened().cluster.admin(
      "get",
      "workloadendpoint",
      name,
      `--namespace=${NAMESPACE}`,
      "-o",
      "json",
    );
    return (JSON.parse(text) as { readonly spec: Readonly<Record<string, unknown>> }).spec;
  };
}

function manifestOf(name: string): string {
  return `${MANIFESTS}/${name}.json`;
}
