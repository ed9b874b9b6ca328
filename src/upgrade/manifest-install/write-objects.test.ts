import { describe, expect, test } from "bun:test";
import { rejectionOf } from "../../../test/support/thrown-by.ts";
import { PluginError } from "../../errors.ts";
import type { ClusterObjects } from "../../kube/objects.ts";
import { writeObject } from "./write-objects.ts";

const ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration";
const former = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: {
    name: "a",
    namespace: "b",
    resourceVersion: "1",
    annotations: { [ANNOTATION]: "{}" },
    managedFields: [
      { manager: "kubectl-client-side-apply", operation: "Update", apiVersion: "v1", fieldsV1: { "f:data": {} } },
    ],
  },
  data: { old: "1" },
};
const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a", namespace: "b" }, data: { new: "1" } };
const wanted = { object, mode: "whole" } as const;

type Stored = Omit<typeof former, "data"> & { readonly data: object };

/** An API with one object; what is given takes the place of its own functions. */
class OneObject {
  stored: Stored = former;
  readonly calls: string[] = [];

  objects(more: Partial<ClusterObjects>): ClusterObjects {
    const own = {
      read: async () => this.stored,
      replace: async (_: string, next: Stored, { isDryRun = false } = {}) => this.write("replace", next, isDryRun),
      apply: async (_: string, next: Stored, { isDryRun = false }) => this.write("apply", next, isDryRun),
      patchJson: async () => this.write("patch", { ...this.stored, metadata: { ...this.stored.metadata } }, false),
    };
    return { ...own, ...more } as unknown as ClusterObjects;
  }

  write(call: string, next: Stored, isDryRun: boolean): Stored {
    this.calls.push(isDryRun ? `${call} (dry run)` : call);
    if (isDryRun) return next;
    const resourceVersion = String(Number(this.stored.metadata.resourceVersion) + 1);
    this.stored = { ...next, metadata: { ...next.metadata, resourceVersion } };
    return this.stored;
  }
}

describe("writeObject()", () => {
  test("replaces an object whose former content the server does not accept any more", async () => {
    const api = new OneObject();
    let patches = 0;
    const objects = api.objects({
      patchJson: async () => {
        patches += 1;
        if (patches > 100) throw new Error("it goes on for ever");
        throw new PluginError("resource-invalid", "denied by a policy");
      },
      // Without the fields of others, apply leaves them.
      apply: async (_, next) => ({ ...next, data: { old: "1", new: "1" } }),
    });

    expect(await writeObject(objects, wanted)).toBe("is replaced: denied by a policy");
    expect({ patches, data: api.stored.data }).toEqual({ patches: 1, data: { new: "1" } });
  });

  test("ends if others report into the object all the time", async () => {
    const api = new OneObject();
    let patches = 0;
    const objects = api.objects({
      patchJson: async () => {
        patches += 1;
        if (patches > 100) throw new Error("it goes on for ever");
        api.write("report", api.stored, false);
        throw new PluginError("resource-invalid", "the test of the version failed");
      },
    });

    expect(await rejectionOf(() => writeObject(objects, wanted))).toMatchObject({ kind: "resource-changed" });
    expect(patches).toBeLessThan(10);
  });

  test.each<["apply" | "replace"]>([["apply"], ["replace"]])(
    "is done if the response to its %s was lost, and the next attempt is refused because of the version",
    async (call) => {
      const api = new OneObject();
      const lost = async (_: string, next: object, { isDryRun = false } = {}) => {
        if (isDryRun) return next as Stored;
        api.write(call, next as Stored, false);
        throw new PluginError("resource-changed", "the object has been modified");
      };
      const objects = api.objects(
        call === "apply" ? { apply: lost } : { replace: lost, apply: async () => ({ data: { other: "1" } }) },
      );

      expect(await writeObject(objects, wanted)).toBe("is applied");
      expect(api.stored.data).toEqual({ new: "1" });
    },
  );

  test("does not replace an object because apply could not be tried", async () => {
    const api = new OneObject();
    const objects = api.objects({
      apply: () => Promise.reject(new PluginError("api-unavailable", "status 503")),
    });

    expect(await rejectionOf(() => writeObject(objects, wanted))).toMatchObject({ kind: "api-unavailable" });
    expect(api.calls).not.toContain("replace");
  });

  test("says why an object is replaced that apply does not accept", async () => {
    const api = new OneObject();
    const objects = api.objects({
      apply: () => Promise.reject(new PluginError("resource-invalid", "duplicate entries")),
    });

    expect(await writeObject(objects, wanted)).toBe("is replaced: duplicate entries");
    expect(api.stored.data).toEqual({ new: "1" });
  });
});
