import { describe, expect, test } from "bun:test";
import { startFakeApi } from "../../../test/support/kube-api/fake-api.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { ENDPOINT } from "../../model/kinds.ts";
import { SIDECAR_ANNOTATION } from "../../model/sidecar-annotation.ts";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";
import { annotateEndpoint, annotatePod } from "./write-annotation.ts";

const KEY = ENDPOINT.key({ namespace: "red", name: "here-k8s-web-eth0" });
const ENDPOINT_OF_WEB = workloadEndpoint.make(
  { name: "here-k8s-web-eth0", namespace: "red", uid: "uid-1", annotations: { other: "stays" } },
  { pod: "web" },
);

describe("annotateEndpoint()", () => {
  test("writes, changes and removes the annotation, and leaves all else as it is", async () => {
    const store = openMemory();
    const unknown = { ...ENDPOINT_OF_WEB, spec: { ...ENDPOINT_OF_WEB.spec, ofLaterRelease: 1 } };
    await store.commit([{ kind: "create", key: KEY, value: JSON.stringify(unknown) }]);
    const stored = async () => JSON.parse((await store.read([{ kind: "key", key: KEY }])).answers[0]?.[0]?.value ?? "");

    await annotateEndpoint(store, KEY, "1.2.3");
    expect((await stored()).metadata.annotations).toEqual({ other: "stays", [SIDECAR_ANNOTATION]: "1.2.3" });
    expect((await stored()).spec.ofLaterRelease).toBe(1);
    await annotateEndpoint(store, KEY, undefined);
    expect((await stored()).metadata.annotations).toEqual({ other: "stays" });
  });

  test("does not create an endpoint that is gone", async () => {
    const store = openMemory();
    await annotateEndpoint(store, KEY, "1.2.3");
    expect((await store.read([{ kind: "key", key: KEY }])).answers).toEqual([[]]);
  });
});

describe("annotatePod()", () => {
  test("writes and removes the annotation of the pod's status", async () => {
    const api = startFakeApi();
    const requests: string[] = [];
    const client = api.connect(async (request, send) => {
      requests.push(`${request.method} ${request.path} ${request.body}`);
      return send();
    });
    const path = "/api/v1/namespaces/red/pods";
    await client.request({
      method: "POST",
      path,
      body: JSON.stringify({ metadata: { name: "web", namespace: "red" } }),
    });

    await annotatePod(client, ENDPOINT_OF_WEB, "1.2.3");
    expect(api.object(`${path}/web`)?.metadata["annotations"]).toEqual({ [SIDECAR_ANNOTATION]: "1.2.3" });
    await annotatePod(client, ENDPOINT_OF_WEB, undefined);
    expect(api.object(`${path}/web`)?.metadata["annotations"]).toEqual({});
    expect(requests.at(-1)).toStartWith(`PATCH ${path}/web/status {"metadata":{"uid":"uid-1"`);
  });

  test.each([404, 409, 422])("a pod that is gone or is another one (%i) is left alone", async (status) => {
    await annotatePod({ request: async () => ({ status, text: "{}" }) }, ENDPOINT_OF_WEB, "1.2.3");
  });

  test("every other refusal is an error", async () => {
    const client = { request: async () => ({ status: 403, text: "{}" }) };
    await expect(annotatePod(client, ENDPOINT_OF_WEB, "1.2.3")).rejects.toThrow();
  });
});
