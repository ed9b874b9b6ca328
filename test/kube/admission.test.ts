/** `deploy/admission/` on a real API server: who may choose addresses, and who may not. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import { requireOk } from "../../src/kube/require-ok.ts";
import { RECORDED_ANNOTATIONS, recordedAnnotation } from "../../src/model/recorded-annotations.ts";
import { withClient } from "../support/imitated-api.ts";
import { apiServerProblem } from "../support/kube-apiserver.ts";
import { testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { type AdmissionCluster, openAdmissionCluster } from "./admission-cluster.ts";
import {
  ALSO_RECORDED,
  BINDING,
  bindingRequest,
  creation,
  DEVELOPER,
  deployment,
  dryRun,
  FLOATING,
  LIST,
  manifest,
  mirrorPod,
  PLUGIN,
  POLICIES,
  pod,
  RECORDED,
  type Request,
  SCHEDULER,
  SOURCES,
  WITHOUT_IPAM,
} from "./admission-requests.ts";

const problem = apiServerProblem();
const testServer = testNeeding(problem);

const IN_PLAIN = "--namespace=plain";

let cluster: AdmissionCluster;

beforeAll(async () => {
  if (problem === undefined) cluster = await openAdmissionCluster();
}, 60_000);

afterAll(() => cluster?.stop());

describe("addresses that IPAM does not check", () => {
  const chosen = [
    [WITHOUT_IPAM, "ipAddrsNoIpam"],
    [FLOATING, "floatingIPs"],
    [SOURCES, "allowedSourcePrefixes"],
  ] as const;
  for (const [annotation, key] of chosen) {
    testServer(`cannot be chosen with ${key} by a pod that is not in the list, whoever creates it`, async () => {
      const wanted = pod("plain", "web", { annotations: { [annotation]: '["192.0.2.5"]' } });
      const message = `annotation "${annotation}" is not permitted: key "${key}" of ConfigMap "kube-system/${LIST}" contains neither namespace "plain" nor service account "plain/default"`;

      expect(await cluster.refusal(DEVELOPER, ...dryRun(wanted))).toContain(message);
      await expect(cluster.kubectl(...creation(wanted))).rejects.toThrow(message);
    });
  }

  testServer("can be chosen in a namespace of the list, by the annotation that the list permits alone", async () => {
    const annotated = (annotation: string) =>
      pod("permitted", "web", { annotations: { [annotation]: '["192.0.2.5"]' } });

    expect(await cluster.refusal(DEVELOPER, ...dryRun(annotated(FLOATING)))).toContain('key "floatingIPs"');
    await cluster.as(DEVELOPER, ...creation(annotated(WITHOUT_IPAM)));
  });

  testServer("can be used as sources in a namespace of the list, also by a change of a running pod", async () => {
    await cluster.as(
      DEVELOPER,
      ...creation(pod("mixed", "sender", { annotations: { [SOURCES]: '["192.0.2.0/24"]' } })),
    );
    const widen = ["annotate", "pod", "sender", `${SOURCES}=["0.0.0.0/0"]`, "--overwrite", "--namespace=mixed"];
    await cluster.as(DEVELOPER, widen);
    await cluster.as(DEVELOPER, ...creation(pod("plain", "silent")));
    const add = ["annotate", "pod", "silent", `${SOURCES}=["0.0.0.0/0"]`, IN_PLAIN];
    expect(await cluster.refusal(DEVELOPER, add)).toContain('key "allowedSourcePrefixes"');
    for (const annotation of ALSO_RECORDED) {
      const forge = ["annotate", "pod", "silent", `${annotation}=["0.0.0.0/0"]`, IN_PLAIN];
      expect(await cluster.refusal(DEVELOPER, forge)).toContain("records what the network plugin assigned");
    }
  });

  testServer(
    "can be chosen by a pod with a service account of the list, not by a pod that this account creates",
    async () => {
      const annotations = { [WITHOUT_IPAM]: '["192.0.2.6"]' };
      const router = "system:serviceaccount:mixed:router";
      const editor = ["--clusterrole=edit", "--serviceaccount=mixed:router", "--namespace=mixed"];
      await cluster.kubectl(["create", "rolebinding", "router", ...editor]);

      await cluster.as(DEVELOPER, ...creation(pod("mixed", "router", { annotations, serviceAccount: "router" })));
      expect(await cluster.refusal(router, ...dryRun(pod("mixed", "other", { annotations })))).toContain(
        'neither namespace "mixed" nor service account "mixed/default"',
      );
      // An account of the same name in another namespace.
      await cluster.kubectl(["create", "serviceaccount", "router", IN_PLAIN]);
      expect(
        await cluster.refusal(DEVELOPER, ...dryRun(pod("plain", "router", { annotations, serviceAccount: "router" }))),
      ).toContain('service account "plain/router"');
    },
  );

  testServer("follow the list for the pods of a Deployment, which a controller creates", async () => {
    await cluster.as(DEVELOPER, ...creation(deployment("plain", { [WITHOUT_IPAM]: '["192.0.2.7"]' })));
    await cluster.as(DEVELOPER, ...creation(deployment("permitted", { [WITHOUT_IPAM]: '["192.0.2.8"]' })));

    await pollUntil(
      async () => (await cluster.podNames("permitted")).some((name) => name.startsWith("web-")),
      "the pod",
    );
    await pollUntil(
      async () =>
        (await cluster.replicaSetConditions("plain")).includes(
          'contains neither namespace "plain" nor service account',
        ),
      "the failure of the ReplicaSet",
    );
    expect((await cluster.podNames("plain")).filter((name) => name.startsWith("web-"))).toEqual([]);
  });

  testServer("follow the list for static pods, whose mirror pods have no service account", async () => {
    await cluster.apply(JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name: "node" } }));
    const { metadata } = await cluster.get<{ metadata: { uid: string } }>("node", "node");
    const mirror = (namespace: string) =>
      mirrorPod(namespace, { node: "node", uid: metadata.uid, annotations: { [WITHOUT_IPAM]: '["192.0.2.7"]' } });
    const kubelet = (namespace: string): Request => {
      const [args, stdin] = dryRun(mirror(namespace));
      return [["--as-group=system:nodes", ...args], stdin];
    };

    expect(await cluster.refusal("system:node:node", ...kubelet("plain"))).toContain('neither namespace "plain"');
    await cluster.as("system:node:node", ...kubelet("permitted"));
  });

  testServer("cannot be added to a running pod, nor changed; other changes of the pod go on", async () => {
    await cluster.as(DEVELOPER, ...creation(pod("plain", "running")));
    const annotate = (name: string, change: string) => ["annotate", "pod", name, change, "--overwrite", IN_PLAIN];

    expect(await cluster.refusal(DEVELOPER, annotate("running", `${FLOATING}=["192.0.2.9"]`))).toContain(
      "is not permitted",
    );
    expect(await cluster.refusal(DEVELOPER, annotate("older", `${WITHOUT_IPAM}=["192.0.2.9"]`))).toContain(
      "is not permitted",
    );
    for (const name of ["running", "older"]) await cluster.as(DEVELOPER, ["label", "pod", name, "a=b", IN_PLAIN]);
    expect(await cluster.annotationsOf("older")).toHaveProperty([WITHOUT_IPAM], '["192.0.2.1"]');
    await cluster.as(DEVELOPER, annotate("older", `${WITHOUT_IPAM}-`));
    expect(await cluster.annotationsOf("older")).not.toHaveProperty([WITHOUT_IPAM]);
  });

  testServer("can be changed on a running pod of the list", async () => {
    await cluster.as(DEVELOPER, ...creation(pod("mixed", "moved")));

    await cluster.as(DEVELOPER, ["annotate", "pod", "moved", `${FLOATING}=["192.0.2.9"]`, "--namespace=mixed"]);
  });

  testServer("cannot be chosen through a subresource or a binding, not even by an administrator", async () => {
    await cluster.as(DEVELOPER, ...creation(pod("plain", "bound")));
    const patch = JSON.stringify({ metadata: { annotations: { [FLOATING]: '["192.0.2.9"]' } } });
    const change = ["patch", "pod", "bound", IN_PLAIN, "--type=merge", `--patch=${patch}`];

    expect(await cluster.refusal(SCHEDULER, ...bindingRequest("bound", FLOATING))).toContain("only on the pod itself");
    expect(await cluster.refusal(SCHEDULER, ...bindingRequest("bound", FLOATING, "bindings"))).toContain(
      "only on the pod itself",
    );
    await expect(cluster.kubectl([...change, "--subresource=status"])).rejects.toThrow("only on the pod itself");
    // The API server itself drops annotations there.
    for (const subresource of ["ephemeralcontainers", "resize"]) {
      await cluster.kubectl([...change, `--subresource=${subresource}`]).catch(() => undefined);
    }
    expect(await cluster.annotationsOf("bound")).not.toHaveProperty([FLOATING]);

    await cluster.as(SCHEDULER, ...bindingRequest("bound", "example.org/any"));
    expect(await cluster.annotationsOf("bound")).toHaveProperty(["example.org/any"]);
  });
});

describe("the addresses that the plugin records", () => {
  testServer("are not forged, changed or removed by those who may not patch the status of pods", async () => {
    const only = "only those who may patch pods/status may set it";
    const change = (value: string) => ["annotate", "pod", "recorded", RECORDED + value, "--overwrite", IN_PLAIN];
    expect(
      await cluster.refusal(
        DEVELOPER,
        ...dryRun(pod("plain", "forged", { annotations: { [RECORDED]: "192.0.2.1/32" } })),
      ),
    ).toContain(only);
    await cluster.as(DEVELOPER, ...creation(pod("plain", "recorded")));
    expect(await cluster.refusal(DEVELOPER, change("=192.0.2.1/32"))).toContain(only);
    expect(await cluster.refusal(SCHEDULER, ...bindingRequest("recorded", RECORDED))).toContain(only);

    const patch = JSON.stringify({ metadata: { annotations: { [RECORDED]: "10.1.0.1/32" } } });
    await cluster.as(PLUGIN, ["patch", "pod", "recorded", IN_PLAIN, "--subresource=status", `--patch=${patch}`]);

    expect(await cluster.refusal(DEVELOPER, change("=192.0.2.1/32"))).toContain(only);
    expect(await cluster.refusal(DEVELOPER, change("-"))).toContain(only);
    await cluster.as(DEVELOPER, ["label", "pod", "recorded", "a=b", IN_PLAIN]);
    expect(await cluster.annotationsOf("recorded")).toHaveProperty([RECORDED], "10.1.0.1/32");
  });

  testServer("are all protected", async () => {
    for (const name of RECORDED_ANNOTATIONS) {
      const annotations = { [recordedAnnotation(name)]: '[{"externalIP":"192.0.2.1"}]' };
      expect(await cluster.refusal(DEVELOPER, ...dryRun(pod("plain", "forged", { annotations })))).toContain(
        `annotation "${recordedAnnotation(name)}" records what the network plugin assigned`,
      );
    }
  });

  testServer("are written and blanked under the deployed role", async () => {
    await cluster.as(DEVELOPER, ...creation(pod("plain", "assigned")));
    await cluster.apply(
      readFileSync(join(import.meta.dir, `../../deploy/rbac/${identity.product}-kubernetes.yaml`), "utf8"),
    );
    const { kubeconfig } = await cluster.serviceAccount({ name: identity.product });
    const path = "/api/v1/namespaces/plain/pods/assigned/status";
    await withClient({ kubeconfigs: [kubeconfig] }, async (client) => {
      for (const address of ["10.1.0.3/32", ""]) {
        const body = JSON.stringify({ metadata: { annotations: { [RECORDED]: address } } });
        const request = { method: "PATCH", path, body, contentType: "application/merge-patch+json" } as const;
        requireOk(await client.request(request), request);

        expect(await cluster.annotationsOf("assigned")).toHaveProperty([RECORDED], address);
      }
    });
  });

  testServer("are not forged by the template of a Deployment", async () => {
    await cluster.as(DEVELOPER, ...creation(deployment("mixed", { [RECORDED]: "192.0.2.1/32" })));

    await pollUntil(
      async () => (await cluster.replicaSetConditions("mixed")).includes("may patch pods/status"),
      "the failure of the ReplicaSet",
    );
  });

  testServer("may be restored from a backup by an administrator", async () => {
    const restored = pod("plain", "restored", { annotations: { [RECORDED]: "10.1.0.2/32" } });

    await cluster.kubectl(...creation(restored));
  });
});

describe("the list", () => {
  testServer("is refused with an unknown key or a malformed line", async () => {
    await expect(cluster.changeList({ floatingIP: "plain" })).rejects.toThrow(
      "unknown key; the keys are ipAddrsNoIpam, floatingIPs, allowedSourcePrefixes",
    );
    await expect(cluster.changeList({ floatingIPs: "plain, permitted" })).rejects.toThrow(
      'each line must be "namespace"',
    );
  });

  testServer("permits nobody without an entry, and a change of it counts at once", async () => {
    const wanted = pod("mixed", "late", { annotations: { [FLOATING]: '["192.0.2.9"]' } });
    await cluster.changeList({ floatingIPs: null });

    await cluster.untilRefused(wanted);

    await cluster.changeList({ floatingIPs: "mixed" });
    await pollUntil(async () => (await cluster.refusal(DEVELOPER, ...dryRun(wanted))) === "", "the permission");
  });

  testServer(
    "refuses nobody who chooses nothing, whatever it contains",
    async () => {
      // As it may have been written before the policies, or while they were switched off.
      await cluster.kubectl(["delete", "validatingadmissionpolicybinding", LIST]);
      const damaged = [
        { ipAddrsNoIpam: "%, plain\n///\n" },
        { other: "plain" },
        undefined,
        { floatingIPs: "a\n".repeat(400_000) },
      ];
      for (const data of damaged) {
        await pollUntil(() => isAccepted(["replace", "--filename=-"], listWith(data)), "the damage");
        await cluster.untilRefused(pod("permitted", "late", { annotations: { [WITHOUT_IPAM]: '["192.0.2.9"]' } }));

        await cluster.as(DEVELOPER, ...dryRun(pod("plain", "late")));
        await cluster.as(DEVELOPER, ["label", "pod", "recorded", "damaged=list", "--overwrite", IN_PLAIN]);
      }
      await cluster.kubectl(["replace", "--filename=-"], listWith({ floatingIPs: "mixed" }));
      await cluster.apply(manifest(POLICIES));
    },
    60_000,
  );

  function isAccepted(...[args, stdin]: Request): Promise<boolean> {
    return cluster.kubectl(args, stdin).then(
      () => true,
      () => false,
    );
  }

  function listWith(data: object | undefined): string {
    const metadata = { name: LIST, namespace: "kube-system" };
    return JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata, data });
  }

  testServer(
    "cannot be deleted before the policy if it permits somebody; if it is missing, pods that choose nothing are created",
    async () => {
      const remove = ["delete", "configmap", LIST, "--namespace=kube-system"];
      await pollUntil(async () => !(await isAccepted([...remove, "--dry-run=server"])), "the policy of the list");
      await expect(cluster.kubectl(remove)).rejects.toThrow(
        `delete ValidatingAdmissionPolicyBindings "${BINDING}" and "${LIST}" first`,
      );
      await expect(cluster.kubectl(["delete", "configmaps", "--all", "--namespace=kube-system"])).rejects.toThrow(
        BINDING,
      );
      await cluster.kubectl(["delete", "validatingadmissionpolicybinding", LIST]);
      await pollUntil(async () => (await cluster.kubectl(remove)) !== "", "the removal of the list");
      const chooser = dryRun(pod("plain", "late", { annotations: { [WITHOUT_IPAM]: '["192.0.2.9"]' } }));
      await pollUntil(async () => (await cluster.refusal(DEVELOPER, ...chooser)) === "", "the removal to be noticed");

      expect(await cluster.refusal(DEVELOPER, ...dryRun(pod("plain", "late")))).toBe("");
      const status = JSON.stringify({ status: { message: "reported" } });
      await cluster.as(PLUGIN, ["patch", "pod", "recorded", IN_PLAIN, "--subresource=status", `--patch=${status}`]);
    },
    60_000,
  );
});

describe("the policies", () => {
  testServer("have no expression that the API server's own type check warns about", async () => {
    interface Policy {
      readonly metadata: { readonly name: string; readonly generation: number };
      readonly status?: { readonly observedGeneration?: number; readonly typeChecking?: object };
    }
    const policies = async () => (await cluster.get<{ items: Policy[] }>("validatingadmissionpolicies")).items;
    await pollUntil(
      async () =>
        (await policies()).every(({ metadata, status }) => status?.observedGeneration === metadata.generation),
      "the type check",
    );

    const checked = await policies();
    expect(checked).toHaveLength(5);
    expect(checked.map(({ metadata, status }) => [metadata.name, status?.typeChecking])).toEqual(
      checked.map(({ metadata }) => [metadata.name, {}]),
    );
  });
});
