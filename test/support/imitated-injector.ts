/** The injector of a mesh: a real webhook that adds what its ConfigMap says to new pods, without rendering the template. */
import { readFileSync } from "node:fs";
import { sidecarImageIn } from "../../src/alp/mesh/insert-sidecar.ts";
import { hasFormerSidecar } from "../../src/alp/upgrade/remove-former.ts";
import { identity } from "../../src/identity.ts";
import type { ClusterObjects } from "../../src/kube/objects.ts";
import { makeRoot, makeSigned } from "./certificates.ts";

export const INJECTOR = "/api/v1/namespaces/istio-system/configmaps/istio-sidecar-injector";
export const FORMER_SIDECAR_IMAGE = `${identity.product}/dikastes:v3.26.0`;

/** Pods of `namespace` pass it. */
export async function startInjector(
  objects: ClusterObjects,
  { namespace, directory }: { readonly namespace: string; readonly directory: string },
): Promise<Disposable> {
  const authority = makeRoot(directory, "injector-authority");
  const certificate = makeSigned(directory, "injector", authority);
  const listener = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    tls: { cert: readFileSync(certificate.cert, "utf8"), key: readFileSync(certificate.key, "utf8") },
    async fetch(asked) {
      // biome-ignore lint/suspicious/noExplicitAny: an AdmissionReview.
      const { request } = (await asked.json()) as any;
      const added = [{ name: "istio-proxy", image: "proxy" }, ...(await sidecars(objects))];
      const patch = added.map((value) => ({ op: "add", path: "/spec/containers/-", value }));
      const response = { uid: request.uid, allowed: true, patchType: "JSONPatch", patch: btoa(JSON.stringify(patch)) };
      return Response.json({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response });
    },
  });
  await objects.create("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "MutatingWebhookConfiguration",
    metadata: { name: "injector" },
    webhooks: [
      {
        name: "injector.example.org",
        admissionReviewVersions: ["v1"],
        sideEffects: "None",
        clientConfig: {
          url: `https://127.0.0.1:${listener.port}/inject`,
          caBundle: readFileSync(authority.cert).toString("base64"),
        },
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
        rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }],
      },
    ],
  });
  return { [Symbol.dispose]: () => void listener.stop(true) };
}

async function sidecars(objects: ClusterObjects): Promise<readonly object[]> {
  const { data } = (await objects.read(INJECTOR)) as { readonly data: { readonly config: string } };
  const { config } = data;
  const image = sidecarImageIn(config);
  return [
    ...(hasFormerSidecar(config) ? [{ name: "dikastes", image: FORMER_SIDECAR_IMAGE }] : []),
    ...(image === undefined ? [] : [{ name: identity.sidecar, image }]),
  ];
}
