import { describe, expect, test } from "bun:test";
import { linkInImage, pathInImage } from "../../scripts/image/base-files.ts";
import { addressesOf } from "../../scripts/image/download.ts";
import { IMAGE_PACKAGES, PACKAGE_NAMES } from "../../scripts/image/packages.ts";
import { pinnedPackage } from "../../scripts/image/pinned-package.ts";

describe("pathInImage()", () => {
  test.each([
    ["lib/x86_64-linux-gnu/libc.so.6", "usr/lib/x86_64-linux-gnu/libc.so.6"],
    ["lib64/ld-linux-x86-64.so.2", "usr/lib64/ld-linux-x86-64.so.2"],
    ["lib/ld-linux-aarch64.so.1", "usr/lib/ld-linux-aarch64.so.1"],
    ["usr/sbin/bird", "usr/sbin/bird"],
    ["usr/share/doc/bird2/copyright", "usr/share/doc/bird2/copyright"],
  ])("puts %p below /usr", (path, expected) => {
    expect(pathInImage(path)).toBe(expected);
  });

  test.each(["usr/lib/x86_64-linux-gnu/gconv/UTF-16.so", "usr/share/man/man8/bird.8.gz", "etc/init.d/bird"])(
    "leaves out %p",
    (path) => {
      expect(pathInImage(path)).toBeUndefined();
    },
  );
});

describe("linkInImage()", () => {
  test("makes an absolute target relative", () => {
    expect(linkInImage("usr/lib64/ld.so", "/lib/x86_64-linux-gnu/ld.so")).toBe("../lib/x86_64-linux-gnu/ld.so");
  });

  test("keeps a relative target", () => {
    expect(linkInImage("usr/lib/x86_64-linux-gnu/libz.so.1", "libz.so.1.2.13")).toBe("libz.so.1.2.13");
  });
});

describe("addressesOf()", () => {
  test("prefers the mirror of this machine that has the archive, then the public one, then the archive of all versions", () => {
    const sites = ["http://mirror.example/debian-security", "http://mirror.example/debian/"];

    expect(addressesOf("debian/pool/main/b/bird2.deb", sites)).toEqual([
      "http://mirror.example/debian/pool/main/b/bird2.deb",
      "http://deb.debian.org/debian/pool/main/b/bird2.deb",
      expect.stringMatching(
        /^http:\/\/snapshot\.debian\.org\/archive\/debian\/\d{8}T235959Z\/pool\/main\/b\/bird2\.deb$/,
      ),
    ]);
  });
});

describe("pinnedPackage()", () => {
  test("reads what apt prints", () => {
    const digest = "0".repeat(64);
    const address = "http://site.example/debian/pool/main/g/glibc/libc6_2.36-9%2bdeb12u14_arm64.deb";

    expect(pinnedPackage(`'${address}' libc6_2.36-9+deb12u14_arm64.deb 2324660 SHA256:${digest}`)).toEqual({
      name: "libc6",
      version: "2.36-9+deb12u14",
      path: "debian/pool/main/g/glibc/libc6_2.36-9+deb12u14_arm64.deb",
      digest,
    });
  });

  test("keeps the epoch of the version, which the address does not have", () => {
    const address = "http://site.example/debian/pool/main/z/zlib/zlib1g_1.2.13.dfsg-1_amd64.deb";

    expect(pinnedPackage(`'${address}' zlib1g_1%3a1.2.13.dfsg-1_amd64.deb 1 SHA256:${"0".repeat(64)}`)).toMatchObject({
      name: "zlib1g",
      version: "1:1.2.13.dfsg-1",
    });
  });
});

test("both architectures have all packages, pinned by hash", () => {
  for (const architecture of ["amd64", "arm64"] as const) {
    const pinned = IMAGE_PACKAGES[architecture];
    expect(pinned.map(({ name }) => name)).toEqual([...PACKAGE_NAMES]);
    for (const { path, digest } of pinned) {
      expect(path).toMatch(new RegExp(`_(${architecture}|all)\\.deb$`));
      expect(digest).toMatch(/^[0-9a-f]{64}$/);
    }
  }
});
