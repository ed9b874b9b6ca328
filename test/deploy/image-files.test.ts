import { describe, expect, test } from "bun:test";
import { linkInImage, pathInImage } from "../../scripts/image/base-files.ts";
import { addressesOf } from "../../scripts/image/download.ts";

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
        /^http:\/\/snapshot\.debian\.org\/archive\/debian\/\d+T000000Z\/pool\/main\/b\/bird2\.deb$/,
      ),
    ]);
  });
});
