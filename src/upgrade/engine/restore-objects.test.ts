import { describe, expect, test } from "bun:test";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import type { ClusterObjects } from "../../kube/objects.ts";
import { restoreObject } from "./restore-objects.ts";

const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";
const PATH = "/api/v1/namespaces/a/configmaps/b";
const before = { kind: "ConfigMap", metadata: { name: "b", uid: "u", resourceVersion: "1" }, data: { is: "former" } };

/** Somebody else writes it before each of the first attempts. */
function contested(times: number): { objects: ClusterObjects; written: unknown[] } {
  let attempts = 0;
  const written: unknown[] = [];
  const objects = {
    read: async () => ({ ...before, data: {}, metadata: { ...before.metadata, resourceVersion: `${attempts}` } }),
    replace: async (_: string, object: { metadata: { resourceVersion: string } }) => {
      attempts += 1;
      if (attempts <= times) throw new PluginError("resource-changed", "it has been modified");
      written.push(object.metadata.resourceVersion);
      return {};
    },
  };
  return { objects: objects as unknown as ClusterObjects, written };
}

describe("restoreObject()", () => {
  test("reads an object again that somebody has written meanwhile", async () => {
    const { objects, written } = contested(2);

    expect(await restoreObject(objects, PATH, before)).toBe(true);
    expect(written).toEqual(["2"]);
  });

  test("does not go on for ever", async () => {
    await expect(restoreObject(contested(100).objects, PATH, before)).rejects.toMatchObject({
      kind: "resource-changed",
    });
  });

  test.each<[string, object, object]>([
    ["the manager of its fields", {}, { managedFields: [{ manager: identity.adminTool, operation: "Apply" }] }],
    ["what kubectl applied last", { annotations: { [LAST_APPLIED]: "{}" } }, {}],
  ])("puts back %s, although the content is the same", async (_, former, present) => {
    const saved = { ...before, metadata: { ...before.metadata, ...former } };
    const written: unknown[] = [];
    const objects = {
      read: async () => ({ ...before, metadata: { ...before.metadata, ...present, resourceVersion: "7" } }),
      replace: async (_path: string, object: object) => void written.push(object),
    } as unknown as ClusterObjects;

    expect(await restoreObject(objects, PATH, saved)).toBe(true);
    expect(written).toEqual([{ ...saved, metadata: { ...saved.metadata, resourceVersion: "7" } }]);
    expect(await restoreObject({ ...objects, read: async () => saved }, PATH, saved)).toBe(false);
  });
});
