import { describe, expect, test } from "bun:test";
import type { KubeRequest } from "./api.ts";
import { clusterObjects } from "./objects.ts";

function recorded(respond: (request: KubeRequest) => { status: number; body: object }) {
  const requests: KubeRequest[] = [];
  const request = async (each: KubeRequest) => {
    requests.push(each);
    const { status, body } = respond(each);
    return { status, text: JSON.stringify(body) };
  };
  return { requests, objects: clusterObjects({ request }) };
}

describe("objects of the API", () => {
  test("a list is read page by page, with the same query", async () => {
    const pages: Record<string, object> = {
      "": { items: [{ name: "a" }], metadata: { continue: "2" } },
      "2": { items: [{ name: "b" }], metadata: { continue: "" } },
    };
    const { objects, requests } = recorded(({ query }) => ({
      status: 200,
      body: pages[query?.["continue"] ?? ""] ?? {},
    }));

    expect(await objects.list("/api/v1/pods", { labelSelector: "x" })).toEqual([{ name: "a" }, { name: "b" }]);
    expect(requests.map(({ query }) => query)).toEqual([
      { labelSelector: "x", limit: "500" },
      { labelSelector: "x", limit: "500", continue: "2" },
    ]);
  });

  test("a list begins again if its history is gone, and metadata alone is asked for", async () => {
    let isGone = true;
    const { objects, requests } = recorded(({ query }) => {
      if (query?.["continue"] === undefined)
        return { status: 200, body: { items: [{ name: "a" }], metadata: { continue: "2" } } };
      if (!isGone) return { status: 200, body: { items: [{ name: "b" }] } };
      isGone = false;
      return { status: 410, body: { message: "too old" } };
    });

    const keep = ({ name }: { readonly name?: unknown }) => [name];
    expect(await objects.collect("/api/v1/pods", { content: "metadata", keep })).toEqual(["a", "b"]);
    expect(requests.map(({ query }) => query?.["continue"])).toEqual([undefined, "2", undefined, "2"]);
    expect(requests[0]?.accept).toContain("as=PartialObjectMetadataList");
  });

  test("a dry run is asked for, and a changed object cannot be replaced", async () => {
    const { objects, requests } = recorded(({ method }) => ({ status: method === "PUT" ? 409 : 200, body: {} }));
    await objects.apply("/api/v1/nodes/a", {}, { force: true, isDryRun: true });

    expect(requests[0]?.query).toMatchObject({ dryRun: "All", force: "true" });
    expect(objects.replace("/api/v1/nodes/a", {})).rejects.toMatchObject({ kind: "resource-changed" });
  });
});
