/** The operator on two real nodes under faults: pods keep their network, the status says what is wrong, and it ends well. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import { identity } from "../../src/identity.ts";
import { untilReachEachOther } from "../kube/across-nodes-tests.ts";
import { bareClusterProblem, openBareCluster } from "../support/bare-cluster.ts";
import { testNeeding } from "../support/needs.ts";
import { installationOn, installOperator, removeInstallation, untilInstalled } from "../support/operator-install.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { expectNothingLeft, type InstalledCluster, installedCluster, startPods } from "./installed-tests.ts";

const problem = bareClusterProblem() ?? proofSize({ everyDay: "only in `make soak`", soak: undefined });
const testCluster = testNeeding(problem);
setDefaultTimeout(300_000);

const NETWORK = `${identity.product}Network`;
const { systemNamespace: SYSTEM, operator: OPERATOR, nodeAgent: AGENT } = identity;
const MINUTE = 60_000;

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

interface Pod {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly nodeName: string };
  readonly status: { readonly containerStatuses?: readonly { readonly ready: boolean }[] };
}

describe("the operator under faults", () => {
  let installed: InstalledCluster;
  beforeAll(async () => {
    if (problem !== undefined) return;
    installed = installedCluster(await openBareCluster());
    await installOperator(installed.server);
    await installed.server.apply(JSON.stringify(installationOn(installed.server, "kubernetes")));
    await untilInstalled(installed.server);
    await startPods(installed);
  });
  afterAll(() => installed?.[Symbol.asyncDispose]());

  const kubectl = (...args: readonly string[]) => installed.server.kubectl(args);
  const change = (spec: object) =>
    kubectl("patch", "installation/default", "--type=merge", `--patch=${JSON.stringify({ spec })}`);
  const conditionOf = async (type: string): Promise<Condition | undefined> => {
    const { status } = await installed.server.get<{ readonly status: { readonly conditions: readonly Condition[] } }>(
      "installation/default",
    );
    return status.conditions.find((condition) => condition.type === type);
  };
  const agents = async () =>
    (await installed.server.get<{ readonly items: readonly Pod[] }>("pods", `--namespace=${SYSTEM}`)).items.filter(
      ({ metadata }) => metadata.name.startsWith(`${AGENT}-`),
    );
  testCluster("an API server that is restarted only delays a change", async () => {
    await change({ [NETWORK]: { mtu: 1390 } });
    await installed.server.apiServer.restart();
    await change({ [NETWORK]: { mtu: 1380 } });
    await untilInstalled(installed.server);
    const config = await kubectl("get", "configmap/cni-config", `--namespace=${SYSTEM}`, "--output=yaml");

    expect(config).toContain('"mtu": 1380');
  });

  testCluster("an image that does not exist is reported within a minute, and the networks stay", async () => {
    const changed = performance.now();
    await change({ registry: "registry.invalid/" });
    const isReported = async () => (await conditionOf("Degraded"))?.message.includes("registry.invalid") === true;
    await pollUntil(isReported, "the image to be reported", MINUTE);
    console.log(`Degraded after ${Math.round((performance.now() - changed) / 1_000)} s`);

    const found = await conditionOf("Degraded");
    expect([found?.status, found?.reason]).toEqual(["True", "PodFailure"]);
    expect(found?.message).toMatch(/cannot be pulled.*check registry/);
    const running = (await agents()).filter(({ status }) => status.containerStatuses?.every(({ ready }) => ready));
    expect(running.length).toBe(1);
    await untilReachEachOther(installed.pods, "a", "b");
    // On the node whose agent still runs, new pods get a network too.
    await installed.pods.create({ name: "new", spec: { nodeName: running[0]?.spec.nodeName ?? "" } });
    await installed.pods.ready("new");
    await untilReachEachOther(installed.pods, "new", "b");

    await kubectl(
      "patch",
      "installation/default",
      "--type=json",
      '--patch=[{"op": "remove", "path": "/spec/registry"}]',
    );
    await untilInstalled(installed.server);
    expect((await conditionOf("Degraded"))?.status).toBe("False");
  });

  testCluster("of two operators one writes, and the other takes over if it is killed", async () => {
    await kubectl("scale", `--namespace=${OPERATOR}`, `deployment/${OPERATOR}`, "--replicas=2");
    await kubectl("rollout", "status", `--namespace=${OPERATOR}`, `deployment/${OPERATOR}`, "--timeout=120s");
    const holder = async () =>
      (
        await kubectl("get", "lease", OPERATOR, `--namespace=${OPERATOR}`, "--output=jsonpath={.spec.holderIdentity}")
      ).trim();
    await pollUntil(async () => (await holder()) !== "", "an operator to lead");
    const first = await holder();
    const pod = first.split("_")[0] ?? "";
    await kubectl("delete", "pod", pod, `--namespace=${OPERATOR}`, "--force", "--grace-period=0");
    await pollUntil(async () => ![first, ""].includes(await holder()), "the other operator to lead", MINUTE);

    const edited = JSON.stringify({ data: { config: "edited" } });
    await kubectl("patch", "configmap/cni-config", `--namespace=${SYSTEM}`, "--type=merge", `--patch=${edited}`);
    const isBack = async () =>
      (await kubectl("get", "configmap/cni-config", `--namespace=${SYSTEM}`, "--output=yaml")).includes('"mtu": 1380');
    await pollUntil(isBack, "the config to be put back", 10_000);
    await kubectl("scale", `--namespace=${OPERATOR}`, `deployment/${OPERATOR}`, "--replicas=1");
  });

  testCluster("leaves nothing on the nodes when it is deleted", async () => {
    await installed.pods.removeAll();
    await removeInstallation(installed.server);
    await expectNothingLeft(installed);
  });
});
