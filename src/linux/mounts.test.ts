import { describe, expect, test } from "bun:test";
import { mountsOn } from "./mounts.ts";

const TABLE = `22 1 0:21 / / rw,relatime shared:1 - overlay overlay rw
36 22 0:26 /vendor/sidecars/1 /var/lib/kubelet/a\\040b/mount rw,relatime shared:1 master:2 - tmpfs tmpfs rw,size=100k
37 36 0:26 /vendor/sidecars/1 /var/lib/kubelet/a\\040b/mount ro,nosuid,nodev,noexec - tmpfs tmpfs rw,size=100k
38 22 0:26 / /var/lib/kubelet/a rw - tmpfs tmpfs ro
`;

describe("mountsOn()", () => {
  test("finds every mount on the directory, oldest first, with its own options", () => {
    const point = "/var/lib/kubelet/a b/mount";
    expect(mountsOn(point, TABLE)).toEqual([
      { point, options: ["rw", "relatime"] },
      { point, options: ["ro", "nosuid", "nodev", "noexec"] },
    ]);
  });

  test("finds none on a directory that is only below or above one", () => {
    expect(mountsOn("/var/lib/kubelet", TABLE)).toEqual([]);
    expect(mountsOn("/var/lib/kubelet/a/mount", TABLE)).toEqual([]);
  });
});
