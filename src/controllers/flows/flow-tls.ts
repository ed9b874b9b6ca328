/** The certificates of the flow API, and the APIService that tells the API server whom to trust there. */
import { identity } from "../../identity.ts";
import type { KubeRequest } from "../../kube/api.ts";
import { requireOk } from "../../kube/require-ok.ts";
import { isObject } from "../../model/shape.ts";
import { parseJson } from "../../parse-json.ts";
import { FLOWS, FLOWS_API_SERVICE, flowServerName } from "../../release/workloads/names.ts";
import { type CertificateMaterial, type CertificateOptions, keepCertificate } from "../tls/kept-certificate.ts";

/** The material as it is to be used now; `undefined` until the leading replica has made one. */
export async function keepFlowTls(options: CertificateOptions): Promise<CertificateMaterial | undefined> {
  const kept = await keepCertificate(options, {
    name: FLOWS,
    authority: `${identity.product} flows`,
    namesOf: () => [flowServerName(options.namespace)],
  });
  if (kept !== undefined && options.isLeading()) await publish(options, kept.authorities);
  return kept;
}

async function publish({ client }: CertificateOptions, authorities: string): Promise<void> {
  const path = `/apis/apiregistration.k8s.io/v1/apiservices/${FLOWS_API_SERVICE}`;
  const bundle = Buffer.from(authorities).toString("base64");
  const request: KubeRequest = { method: "GET", path };
  const service: unknown = parseJson(requireOk(await client.request(request), request));
  const spec = isObject(service) && isObject(service["spec"]) ? service["spec"] : {};
  if (spec["caBundle"] === bundle) return;
  const patch: KubeRequest = {
    ...{ method: "PATCH", path, contentType: "application/merge-patch+json", attempt: "retry" },
    body: JSON.stringify({ spec: { caBundle: bundle } }),
  };
  requireOk(await client.request(patch), patch);
}
