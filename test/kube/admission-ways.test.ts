/**
 * The admission policies as operator, chart and manifests bring them, on a real API server: a missing or damaged list refuses no
 * pod that chooses nothing, whichever of the three groups is switched off.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { apiVersionOf, identity, OPERATOR_API } from "../../src/identity.ts";
import { ADMISSION_GROUPS, type AdmissionGroup } from "../../src/model/installation/admission.ts";
import { flowTokenPolicy } from "../../src/release/admission/node-policies.ts";
import { admissionObjects } from "../../src/release/admission/policies.ts";
import { valuesText } from "../../src/release/chart/values.ts";
import { completeInstallation } from "../../src/release/installation/complete.ts";
import type { KubeObject } from "../../src/release/kube-object.ts";
import { manifestFiles } from "../../src/release/manifests/manifest-files.ts";
import { apiServerProblem } from "../support/kube-apiserver.ts";
import { manifestText } from "../support/manifest-text.ts";
import { testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { type AdmissionCluster, openAdmissionCluster } from "./admission-cluster.ts";
import {
  creation,
  DEVELOPER,
  dryRun,
  LIST,
  PLUGIN,
  pod,
  RECORDED,
  type Request,
  WITHOUT_IPAM,
} from "./admission-requests.ts";

const problem = apiServerProblem();
const testServer = testNeeding(problem);
setDefaultTimeout(120_000);

const KINDS: ReadonlySet<string> = new Set(["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"]);
const FLOWS = `${identity.product}-flows.yaml`;
const AGENT = `system:serviceaccount:kube-system:${identity.nodeAgent}`;
const OF_NODE = "--as-user-extra=authentication.kubernetes.io/node-name=node-1";

type Installed = Parameters<typeof admissionObjects>[0];

/** What the operator applies for such an Installation; the chart renders its value `installation` as the spec. */
function ofOperator(spec: object): readonly KubeObject[] {
  const object = { apiVersion: apiVersionOf(OPERATOR_API), kind: "Installation", metadata: { name: "default" }, spec };
  const facts = { version: "v1", namespace: identity.systemNamespace, pools: [], platformPodCidrs: [] };
  const completed = completeInstallation({ default: object }, { ...facts, arePoolsUnknown: false });
  if (!completed.ok) throw new Error(JSON.stringify(completed.problems));
  return admissionObjects(completed.installation).filter(({ kind }) => KINDS.has(kind));
}

function ofManifest(file: string): readonly KubeObject[] {
  const documents = manifestText(file).split(/^---$/m);
  return documents
    .map((text) => Bun.YAML.parse(text) as KubeObject | null)
    .filter((each) => each !== null && KINDS.has(each.kind)) as readonly KubeObject[];
}

/** Without the labels that say which way of installation they belong to. */
const rulesOf = (objects: readonly KubeObject[]) =>
  objects.map(({ kind, metadata, ...more }) => [kind, metadata.name, more["spec"]]);

function chartValues(): object {
  const values = Bun.YAML.parse(valuesText());
  const { enabled, ...spec } = (values as { installation: { enabled: boolean } }).installation;
  return spec;
}

const all: Installed["admissionPolicies"] = { chosenAddresses: true, recordedAddresses: true, nodeAccounts: true };

describe("the policies of each way of installation", () => {
  const manifests = Object.keys(manifestFiles()).filter(
    (file) =>
      file.startsWith(identity.product) && file.endsWith(".yaml") && ofManifest(file).length > 0 && file !== FLOWS,
  );

  test.each(manifests)("%s: all groups, as the operator has them", (file) => {
    const type = file.includes("etcd") ? "Etcd" : "Kubernetes";
    const wanted = admissionObjects({ admissionPolicies: all, datastore: { type } as Installed["datastore"] });
    expect(rulesOf(ofManifest(file))).toEqual(rulesOf(wanted.filter(({ kind }) => KINDS.has(kind))));
  });

  test("the manifest of flows, which is applied in addition, has the policy for their tokens", () => {
    const installed = flowTokenPolicy().filter(({ kind }) => KINDS.has(kind));
    expect(installed).not.toBeEmpty();
    expect(rulesOf(ofManifest(FLOWS))).toEqual(rulesOf(installed));
  });

  test("are all there is a manifest for, and those of the chart's values are the operator's", () => {
    expect(manifests.length).toBeGreaterThan(3);
    expect(rulesOf(ofOperator(chartValues()))).toEqual(rulesOf(ofManifest(`${identity.product}.yaml`)));
  });
});

describe("without a list, or with a damaged one", () => {
  let cluster: AdmissionCluster;
  beforeAll(async () => {
    if (problem !== undefined) return;
    cluster = await openAdmissionCluster();
    await cluster.kubectl(["create", "clusterrolebinding", "agent", "--clusterrole=plugin", `--user=${AGENT}`]);
    // Pods of a node that does not exist are deleted after a while.
    await cluster.apply(JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name: "node-1" } }));
    await cluster.kubectl(...creation(pod("plain", "elsewhere")));
    const placed = JSON.parse(pod("plain", "placed"));
    await cluster.kubectl(...creation(JSON.stringify({ ...placed, spec: { ...placed.spec, nodeName: "node-1" } })));
  });
  afterAll(() => cluster?.stop());

  const status = (name: string) => [
    ...["patch", "pod", name, "--namespace=plain", "--subresource=status"],
    `--patch=${JSON.stringify({ metadata: { annotations: { [RECORDED]: "192.0.2.1/32" } } })}`,
  ];
  const probes: Readonly<Record<AdmissionGroup, () => Promise<string>>> = {
    chosenAddresses: () =>
      cluster.refusal(DEVELOPER, ...dryRun(pod("plain", "probe", { annotations: { [WITHOUT_IPAM]: "[]" } }))),
    recordedAddresses: () =>
      cluster.refusal(DEVELOPER, ...dryRun(pod("plain", "probe", { annotations: { [RECORDED]: "192.0.2.1/32" } }))),
    // A pod of another node.
    nodeAccounts: () => cluster.refusal(AGENT, [...status("elsewhere"), OF_NODE, "--dry-run=server"]),
  };

  /** What happens to a pod that chooses nothing. */
  const live = async (name: string) => {
    await cluster.as(DEVELOPER, ...creation(pod("plain", name)));
    await cluster.as(DEVELOPER, ["label", "pod", name, "a=b", "--namespace=plain"]);
    await cluster.as(PLUGIN, status(name));
    await cluster.as(AGENT, [...status("placed"), OF_NODE]);
    await cluster.as(DEVELOPER, [
      "delete",
      "pod",
      name,
      "--namespace=plain",
      "--wait=false",
      "--grace-period=0",
      "--force",
    ]);
  };
  const list = (data: object) =>
    JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: LIST, namespace: "kube-system" }, data });
  const DAMAGED = { ipAddrsNoIpam: "%, plain\n///\n", other: "plain" };
  /** Its own policy keeps a list with entries, and refuses a damaged one: as it may have been before the policies. */
  const withoutPolicyOfList = async (...request: Request) => {
    await cluster.kubectl(["delete", "validatingadmissionpolicybinding", LIST, "--ignore-not-found"]);
    await pollUntil(async () => (await cluster.kubectl(...request)) !== "", "the change of the list", 30_000);
  };
  const until = (group: AdmissionGroup, state: "on" | "off") =>
    pollUntil(async () => ((await probes[group]()) === "") === (state === "off"), `${group} to be ${state}`, 30_000);

  const switches = [undefined, ...ADMISSION_GROUPS];
  for (const off of switches) {
    const title = off === undefined ? "all groups on" : `${off} off`;
    testServer(`${title}: pods that choose nothing live`, async () => {
      await withoutPolicyOfList(["apply", "--server-side", "--force-conflicts", "--filename=-"], list(DAMAGED));
      const policies = ofOperator({ admissionPolicies: off === undefined ? {} : { [off]: "Disabled" } });
      await cluster.apply(JSON.stringify({ apiVersion: "v1", kind: "List", items: policies }));
      const names = new Set(policies.map(({ metadata }) => metadata.name));
      const others = ofOperator({}).filter(({ metadata }) => !names.has(metadata.name));
      for (const { kind, metadata } of others)
        await cluster.kubectl(["delete", kind, metadata.name, "--ignore-not-found"]);
      for (const group of ADMISSION_GROUPS) await until(group, group === off ? "off" : "on");

      await live(`damaged-${switches.indexOf(off)}`);
      await withoutPolicyOfList(["delete", "configmap", LIST, "--namespace=kube-system"]);
      // Without the list a pod that chooses is accepted: then the API server has noticed.
      await until("chosenAddresses", "off");
      await live(`missing-${switches.indexOf(off)}`);
    });
  }

  testServer("the list counts again after the policies were switched off and on", async () => {
    const apply = (spec: object) =>
      cluster.apply(JSON.stringify({ apiVersion: "v1", kind: "List", items: ofOperator(spec) }));
    const off = { admissionPolicies: { chosenAddresses: "Disabled" } };
    await apply({});
    const kept = new Set(ofOperator(off).map(({ metadata }) => metadata.name));
    for (const { kind, metadata } of ofOperator({}).filter((each) => !kept.has(each.metadata.name))) {
      await cluster.kubectl(["delete", kind, metadata.name]);
    }
    await cluster.kubectl(["apply", "--server-side", "--force-conflicts", "--filename=-"], list({}));
    await until("chosenAddresses", "off");
    await apply({});
    await until("chosenAddresses", "on");
    await cluster.changeList({ ipAddrsNoIpam: "plain" });
    await until("chosenAddresses", "off");
    await cluster.changeList({ ipAddrsNoIpam: "" });
    await until("chosenAddresses", "on");
  });
});
