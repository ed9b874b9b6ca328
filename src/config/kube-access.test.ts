import { describe, expect, test } from "bun:test";
import { decodeNetworkConfig } from "./decode.ts";
import { type KubeAccess, kubeAccess } from "./kube-access.ts";

const MINIMAL = { name: "net", cniVersion: "1.0.0", type: "vendor", ipam: { type: "vendor-ipam" } };

function accessOf(more: object): KubeAccess | undefined {
  const decoded = decodeNetworkConfig({ ...MINIMAL, ...more });
  if (!decoded.ok) throw new Error(decoded.problems.map(({ message }) => message).join());
  return kubeAccess(decoded.config);
}

describe("kubeAccess()", () => {
  test.each<[string, object, KubeAccess | undefined]>([
    ["there is none by default", {}, undefined],
    ["credentials alone give none", { policy: { k8s_auth_token: "t" } }, undefined],
    ["the orchestrator's datastore needs one", { datastore_type: "kubernetes" }, {}],
    ["a kubeconfig", { kubernetes: { kubeconfig: "/k" } }, { kubeconfigs: ["/k"] }],
    ["the root of the API", { kubernetes: { k8s_api_root: "https://a:6443/" } }, { apiRoot: "https://a:6443" }],
    [
      "the path of older configs is removed",
      { policy: { k8s_api_root: "https://a/api/v1/" } },
      { apiRoot: "https://a" },
    ],
    [
      "a path before it stays",
      { kubernetes: { k8s_api_root: "https://a/k8s/c1/api" } },
      { apiRoot: "https://a/k8s/c1" },
    ],
    [
      "the newer field takes precedence",
      { kubernetes: { k8s_api_root: "https://new" }, policy: { k8s_api_root: "https://old" } },
      { apiRoot: "https://new" },
    ],
    [
      "credentials of older configs",
      {
        kubernetes: { kubeconfig: "/k" },
        policy: {
          k8s_auth_token: "t",
          k8s_client_certificate: "/c",
          k8s_client_key: "/key",
          k8s_certificate_authority: "/ca",
        },
      },
      {
        kubeconfigs: ["/k"],
        token: "t",
        clientCertificateFile: "/c",
        clientKeyFile: "/key",
        certificateAuthorityFile: "/ca",
      },
    ],
  ])("%s", (_, config, access) => {
    expect(accessOf(config)).toEqual(access);
  });

  test("a client certificate without its key is refused", () => {
    expect(() => accessOf({ policy: { k8s_client_certificate: "/c" } })).toThrow("k8s_client_key");
  });
});
