import { describe, expect, test } from "bun:test";
import { identity } from "../../identity.ts";
import { envoyAuthorization, envoyFilterObject, type FilterForm } from "./envoy-filter.ts";
import { AUTHORIZATION_SOCKET } from "./sidecar-parts.ts";

const FORMS: readonly FilterForm[] = ["v2", "v3-first", "v3"];

describe("envoyAuthorization()", () => {
  test.each(FORMS)("denies without an answer within 500 ms: %s", (form) => {
    const { http, network } = envoyAuthorization(form);

    for (const filter of [http, network]) {
      expect(filter[form === "v2" ? "config" : "typed_config"]).toMatchObject({
        failure_mode_allow: false,
        grpc_service: { timeout: "0.5s", envoy_grpc: { cluster_name: identity.sidecar } },
      });
    }
  });

  test("speaks version 3 of the service, except to an Envoy that has no choice", () => {
    const versions = FORMS.map(
      (form) => JSON.stringify(envoyAuthorization(form)).split('"transport_api_version":"V3"').length - 1,
    );

    expect(versions).toEqual([0, 2, 2]);
  });

  test.each(FORMS)("asks over the socket that sidecar and proxy share, by HTTP/2: %s", (form) => {
    const { cluster } = envoyAuthorization(form);

    expect(cluster).toMatchObject({ type: "STATIC", name: identity.sidecar });
    expect(JSON.stringify(cluster)).toContain(`{"pipe":{"path":"${AUTHORIZATION_SOCKET}"}}`);
    expect(JSON.stringify(cluster)).toContain('"http2_protocol_options":{}');
  });
});

describe("envoyFilterObject()", () => {
  test.each(FORMS)("adds the cluster, and the filters before the last of each chain, to what comes in: %s", (form) => {
    const { spec } = envoyFilterObject(form);

    const patches = spec.configPatches.map(({ applyTo, match, patch }) => [applyTo, match.context, patch.operation]);
    expect(patches).toEqual([
      ["CLUSTER", "SIDECAR_INBOUND", "ADD"],
      ["NETWORK_FILTER", "SIDECAR_INBOUND", "INSERT_BEFORE"],
      ["HTTP_FILTER", "SIDECAR_INBOUND", "INSERT_BEFORE"],
    ]);
  });
});
